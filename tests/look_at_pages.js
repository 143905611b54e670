// Looks into every frame and reports what a reader would stumble over, page by page.

function troubles({ contentDocument: page }) {
  const window = page.documentElement;
  const wide = [...page.querySelectorAll(".table-wrapper")].filter(isCutOff);
  const empty = [...page.images].filter((image) => !image.naturalWidth);
  const raw = [...page.querySelectorAll("math")].filter((math) => !isDrawn(math));
  return [
    ...(isCutOff(window) ? ["wider than the window"] : []),
    ...wide.map((table) => `table wider than the page: ${firstRow(table)}`),
    ...empty.map((image) => `no picture: ${image.src}`),
    ...raw.map((math) => `equation not drawn: ${math.textContent}`),
  ];
}

const firstRow = (table) => table.querySelector("tr").innerText.replace(/\s+/g, " ");

const isCutOff = (element) => element.scrollWidth > element.clientWidth;

// Without a font for mathematics an index stands on the line, and an exponent above it.
function isDrawn(math) {
  const raised = boxes(math, "msup").every(
    ([base, exponent]) => exponent.top < base.top && base.top < exponent.bottom,
  );
  const lowered = boxes(math, "msub").every(
    ([base, index]) => base.top < index.top && base.bottom < index.bottom,
  );
  return raised && lowered && math.getBoundingClientRect().width > 0;
}

const boxes = (math, tag) =>
  [...math.querySelectorAll(tag)].map((parent) =>
    [...parent.children].map((child) => child.getBoundingClientRect()),
  );

addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  const report = frames.map((frame) => [frame.name, troubles(frame)]);
  document.querySelector("pre").textContent = JSON.stringify(Object.fromEntries(report));
});

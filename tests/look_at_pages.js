// Looks into every frame and reports what a reader would stumble over, page by page.

function troubles({ contentDocument: page }) {
  const window = page.documentElement;
  const wide = [...page.querySelectorAll(".table-wrapper")].filter(isCutOff);
  const empty = [...page.images].filter((image) => !image.naturalWidth);
  const raw = [...page.querySelectorAll("math")].filter((math) => !isDrawn(math));
  return [
    ...(isCutOff(window) ? ["wider than the window"] : []),
    ...wide.map((table) => `table wider than the page: ${table.innerText.slice(0, 60)}`),
    ...empty.map((image) => `no picture: ${image.src}`),
    ...raw.map((math) => `equation not drawn: ${math.textContent}`),
  ];
}

const isCutOff = (element) => element.scrollWidth > element.clientWidth;

function isDrawn(math) {
  const raised = [...math.querySelectorAll("msup")].every((power) => {
    const [base, exponent] = [...power.children].map((c) => c.getBoundingClientRect());
    return exponent.top < base.top && exponent.left >= base.left;
  });
  return raised && math.getBoundingClientRect().width > 0;
}

addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  const report = frames.map((frame) => [frame.name, troubles(frame)]);
  document.querySelector("pre").textContent = JSON.stringify(Object.fromEntries(report));
});

"""Says what a folder of HDF5 files of rescaled images holds, such as the authors'.

    python examples/h5_report.py files

Of the images, only the first few are read. `reproduce.py … --h5 files` trains and tests
on them.
"""

import argparse
from pathlib import Path

from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import h5_report


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    print(h5_report(parser.parse_args().folder))


if __name__ == "__main__":
    main()

"""A small disk that tests fill."""

import os


def fill_the_rest(path):
    """Takes what is left, to the last block."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            os.fsync(file.fileno())

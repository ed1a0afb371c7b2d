"""`python -m pagefile` is the `pagefile` command."""

from pagefile.cli import main

if __name__ == "__main__":
    main()

"""The command line as ``python -m prism``, for where its script is not on the path."""

from prism.cli import main

if __name__ == "__main__":
    main()

"""Run the command line with `python -m turnloom`."""

from turnloom.cli import main

if __name__ == "__main__":
    main()

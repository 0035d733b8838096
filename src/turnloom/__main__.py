"""`python -m turnloom` is `turnloom`."""

from turnloom.cli import main

if __name__ == "__main__":
    main()

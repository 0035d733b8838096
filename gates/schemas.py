"""Writes the JSON Schemas that the package ships, one file for each part of a workflow."""

from pathlib import Path

from turnloom.conversation.logic.schemas import FILES, schema_of, written

SHIPPED = Path("src/turnloom/schemas")


def texts() -> dict[str, bytes]:
    """The files by name, as they should be."""
    return {f"{name}.json": written(schema_of(name)) + b"\n" for name in FILES}


def main() -> None:
    SHIPPED.mkdir(exist_ok=True)
    wanted = texts()
    for path in SHIPPED.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (SHIPPED / name).write_bytes(text)


if __name__ == "__main__":
    main()

"""What a tool gave, as a JSON value."""

import msgspec
from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from turnloom.kernel.values import Json


def value_of(result: CallToolResult) -> Json:
    """The structured content if there is some, else the content: one block, or a list of them."""
    if result.structured_content is not None:
        # What JSON cannot say, such as NaN, goes the way of the log.
        return msgspec.json.decode(msgspec.json.encode(result.structured_content))
    match result.content:
        case []:
            return None
        case [block]:
            return _value(block)
        case blocks:
            return [_value(block) for block in blocks]


def text_of(result: CallToolResult) -> str:
    """The text of a result, for reading."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _value(block: ContentBlock) -> Json:
    """A text as it is; of what no prompt can show, a description."""
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return {"type": block.type, "mimeType": block.mime_type, "bytes": _size(block.data)}
        case EmbeddedResource():
            held = block.resource
            about = {"type": block.type, "uri": held.uri, "mimeType": held.mime_type}
            if isinstance(held, TextResourceContents):
                return about | {"text": held.text}
            return about | {"bytes": _size(held.blob)}
        case ResourceLink():
            about = {"type": block.type, "uri": block.uri, "mimeType": block.mime_type}
            return about | {"name": block.name, "description": block.description}


def _size(encoded: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(encoded.rstrip("=")) * 3 // 4

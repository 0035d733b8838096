"""Convert tool results to JSON values."""

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
    """The structured content if any, else the content: one block, or a list of blocks."""
    if result.structured_content is not None:
        # Values that JSON cannot express, such as NaN, are converted as in the log.
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
    """The text of a block, or a description of content that prompts cannot show."""
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return {"type": block.type, "mimeType": block.mime_type, "bytes": _size(block.data)}
        case EmbeddedResource():
            resource = block.resource
            about = {"type": block.type, "uri": resource.uri, "mimeType": resource.mime_type}
            if isinstance(resource, TextResourceContents):
                return about | {"text": resource.text}
            return about | {"bytes": _size(resource.blob)}
        case ResourceLink():
            about = {"type": block.type, "uri": block.uri, "mimeType": block.mime_type}
            return about | {"name": block.name, "description": block.description}


def _size(encoded: str) -> int:
    """The number of bytes that a base64 text encodes."""
    return len(encoded.rstrip("=")) * 3 // 4

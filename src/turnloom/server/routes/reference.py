"""The API as a page to read, made from the OpenAPI document."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

router = APIRouter()

Node = Mapping[str, Any]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1b1b1f; background: #fff; }
code, summary b { font-family: ui-monospace, monospace; }
summary { cursor: pointer; padding: .3rem 0; }
details > div { border-left: 3px solid #d0d0d8; margin: 0 0 1rem .4rem; padding-left: 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: left;
  vertical-align: top; }
@media (prefers-color-scheme: dark) { body { color: #e8e8ee; background: #18181b; }
  a { color: #9db7ff; } }
"""

# The page has a style, and loads nothing.
_DIGEST = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@router.get("/docs", include_in_schema=False)
async def show_reference(request: Request) -> Response:
    """The operations and the schemas of this server."""
    page = "".join(_page(request.app.openapi()))
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": POLICY})


def _page(document: Node) -> Iterator[str]:
    about = document["info"]
    yield (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_(about["title"])} API'
        f'</title><meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>{_(about['title'])} API <small>{_(about['version'])}</small></h1>"
        f"<p>{_(about['description'])} Send <code>Authorization: Bearer …</code> with an API key "
        "or a JWT, once there are keys. This page shows "
        '<a href="api/v1/openapi.json">the OpenAPI document</a>.</p>'
    )
    tag = ""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                yield f"<h2>{_(tag)}</h2>"
            yield from _operation(method, path, operation)
    yield "<h2>Schemas</h2>"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _schema(name, schema)
    yield "</html>"


def _operation(method: str, path: str, operation: Node) -> Iterator[str]:
    yield (
        f'<details id="{_(operation["operationId"])}"><summary>'
        f"<b>{_(method.upper())} {_(path)}</b> {_(operation['summary'])}"
        f"</summary><div><p>{_(operation.get('description', ''))}</p>"
    )
    rows = [
        (each["name"], each["in"], _type(each["schema"]), each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        rows.append(("", "body", _type(content["schema"]), ""))
    yield from _table(rows)
    answers = [
        (_(status), _(each["description"]), _content(each.get("content", {})))
        for status, each in operation["responses"].items()
    ]
    yield "<table>"
    yield from (f"<tr><td>{a}</td><td>{b}</td><td>{c}</td></tr>" for a, b, c in answers)
    yield "</table></div></details>"


def _content(content: Node) -> str:
    return "<br>".join(
        f"<code>{_(kind)}</code> {_type(each['schema'])}" for kind, each in content.items()
    )


def _schema(name: str, schema: Node) -> Iterator[str]:
    yield (
        f'<details id="schema-{_(name)}"><summary><b>{_(name)}</b></summary><div>'
        f"<p>{_(schema.get('description', ''))}</p>"
    )
    properties = schema.get("properties", {})
    needed = schema.get("required", ())
    yield from _table(
        [
            (key, "" if key in needed else "optional", _type(each), each.get("description", ""))
            for key, each in properties.items()
        ]
    )
    yield f"{'' if properties else _type(schema)}</div></details>"


def _table(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    if rows:
        yield "<table>"
        for name, where, kind, says in rows:
            yield f"<tr><td><code>{_(name)}</code></td><td>{_(where)}</td><td>{kind}</td>"
            yield f"<td>{_(says)}</td></tr>"
        yield "</table>"


def _type(schema: Node) -> str:
    """A schema in a few words, with links to named ones."""
    if "$ref" in schema:
        name = _(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(map(_type, schema[key]))
    if "enum" in schema or "const" in schema:
        return " or ".join(
            f"<code>{_(each)}</code>" for each in schema.get("enum", [schema.get("const")])
        )
    if schema.get("type") == "array":
        parts: list[Node] = schema.get("prefixItems") or [schema.get("items") or {}]
        return f"list of {', '.join(map(_type, parts))}"
    return _(schema.get("type", "any"))


def _(text: object) -> str:
    return escape(str(text))

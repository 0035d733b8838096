"""Outputs as tests declare them."""

from textwrap import dedent

from turnloom.adapters.files import parse
from turnloom.agents.logic.outputs.checking import check_outputs
from turnloom.agents.spec.outputs import OutputModel, Outputs
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import Report

AGENTS = frozenset({"Asker", "Planner"})


def written(text: str) -> DeclarationFile:
    """A document as somebody writes it."""
    document, problems = parse("Flow/structured_outputs.yaml", dedent(text).strip("\n"))
    assert problems == []
    assert document is not None
    return document


def declared(text: str) -> tuple[Outputs, list[Diagnostic]]:
    """The outputs that a text declares, and everything there is to say about them."""
    report = Report("Flow")
    return check_outputs(report, written(text), AGENTS), report.problems


def right(text: str) -> Outputs:
    """The outputs of a text about which there is nothing to say."""
    outputs, problems = declared(text)
    assert problems == []
    return outputs


def model_of(fields: str) -> OutputModel:
    """A model with these fields, in the one line of YAML that says them."""
    return right(f"models: {{M: {{type: model, fields: {fields}}}}}").models["M"]

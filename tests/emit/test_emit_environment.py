"""The template environment: strict, and open to finished code only."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from ppcgc.emit import _environment
from ppcgc.emit.source import Code, identifier


def render(template: str, **views: object) -> str:
    return _environment().from_string(template).render(**views)


def test_finished_code_is_printed_as_it_is() -> None:
    assert render("{{ a }} = {{ b }}", a=identifier("x"), b=Code('"<&>"')) == 'x = "<&>"'


@pytest.mark.parametrize("value", ["import os", 1, None, ["x"], ("x",), b"x"])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="which is no finished code"):
        render("{{ a }}", a=value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ misspelt }}",
        "{{ view.misspelt }}",
        "{% if misspelt %}x{% endif %}",
        "{% if view.misspelt %}x{% endif %}",
        "{% for item in view.misspelt %}x{% endfor %}",
    ],
)
def test_a_misspelt_field_is_an_error(template: str) -> None:
    with pytest.raises(UndefinedError):
        render(template, view=Code("x"))


def test_templates_are_compiled_once() -> None:
    environment = _environment()
    assert environment is _environment()
    assert environment.get_template("stage.py.j2") is environment.get_template("stage.py.j2")

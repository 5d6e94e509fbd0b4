"""The base class of the dataclasses that describe a job, and how they become messages."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .errors import InvalidArgument, invalid_field

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from typing_extensions import Self

MessageT = TypeVar("MessageT", bound="Message")
# Arguments of calls whose fields have other names.
_ARGUMENTS = {
    "members": "newest",
    "member_probabilities": "members",
    "deadline_seconds": "deadline",
    "min_interval_seconds": "interval",
}
_DEFAULTS = (bool, int, str, list, tuple)  # types of a field's default
_WORDS = {5: "number", 6: "number", 7: "bool", 9: "string"}  # by cpp_type of a field


class Spec:
    """A part of a job. A field that is None is left to the server, whose default the docstring says.

    Sequences may be lists, tuples or NumPy arrays of one axis.
    """

    choice: ClassVar[str] = ""  # which field of the parent's choice this is

    def __new__(cls, *args: Any, **given: Any) -> Self:
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        for name in given.keys() - known:
            raise unknown_argument(cls.__name__, name, known)
        return super().__new__(cls)


def unknown_argument(function: str, name: str, known: Iterable[str]) -> TypeError:
    """The error of a call with an argument that is none of the `known` ones."""
    close = difflib.get_close_matches(name, known, 1)
    return TypeError(f"{function}() has no argument {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


def build(kind: type[MessageT], **given: Any) -> MessageT:
    """A request. Raises InvalidArgument that names the argument of the call if a value has a wrong type."""
    made = kind()
    for name, value in given.items():
        field = made.DESCRIPTOR.fields_by_name[name]
        is_default = not value and type(value) in _DEFAULTS and not field.has_presence
        if value is None or is_default:  # to set each default would take a measurable part of a small prediction
            continue
        here, argument = getattr(made, name), _ARGUMENTS.get(name, name)
        if hasattr(value, "DESCRIPTOR"):
            here.CopyFrom(value)
        else:
            word = _WORDS.get(field.cpp_type, "whole number")
            takes = f"a list of {word}s" if hasattr(here, "extend") else f"a {word}"
            _set_value(made, name, value, argument, f"{argument} takes {takes}")
    return made


def fill(message: Message, spec: Spec, path: str = "") -> None:
    """Writes the fields of `spec` that are not None into `message`.

    Raises InvalidArgument that names the field, such as sampler.emcmc.eta, if a value has a wrong type.
    """
    message.SetInParent()
    for field in dataclasses.fields(spec):  # type: ignore[arg-type]
        value = getattr(spec, field.name)
        if value is not None:
            hint = f"{field.name} takes {str(field.type).removesuffix(' | None')}"
            _set(message, field.name, value, f"{path}.{field.name}".lstrip("."), hint)


def _set(message: Message, name: str, value: Any, path: str, hint: str) -> None:
    """Raises InvalidArgument with `hint` or, for a class or its name, with the call of that class."""
    from google.protobuf.message import Message  # specs are made without it

    here = getattr(message, name)
    if not isinstance(here, Message):
        _set_value(message, name, value, path, hint)
    elif isinstance(value, Spec):
        _fill_choice(here, value, path, hint)
    else:
        call = hint_of_class(value, here.DESCRIPTOR.name)
        if call or "constant" not in here.DESCRIPTOR.fields_by_name:  # a schedule is a number, too
            raise invalid_field(path, f"{value!r} is not allowed here", call or hint)
        _set(here, "constant", value, f"{path}.constant", hint)


def _set_value(message: Message, name: str, value: Any, path: str, hint: str) -> None:
    try:
        _set_plain(message, name, value, path, hint)
    except InvalidArgument:
        raise  # an error of an item inside
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise invalid_field(path, f"{value!r} is not allowed here", hint) from None


def _set_plain(message: Message, name: str, value: Any, path: str, hint: str) -> None:
    here = getattr(message, name)
    if hasattr(here, "add"):  # a list of messages
        for index, item in enumerate(value):
            if not isinstance(item, Spec):
                words = f"{item!r} is no object of a class of chainfleet.layers"
                raise invalid_field(f"{path}[{index}]", words, hint_of_class(item, "Layer") or hint)
            _fill_choice(here.add(), item, f"{path}[{index}]", hint)
    elif hasattr(here, "extend"):
        if isinstance(value, str):
            raise invalid_field(path, f"{value!r} is not allowed here, a list is needed", hint)
        here.extend([_plain(item) for item in value])
    elif hasattr(here, "update"):
        here.update({key: _plain(item) for key, item in value.items()})
    else:
        setattr(message, name, _plain(value))


def _fill_choice(message: Message, spec: Spec, path: str, hint: str) -> None:
    family = type(spec).__bases__[0] if spec.choice else type(spec)
    if family.__name__ != message.DESCRIPTOR.name:
        wanted = message.DESCRIPTOR.name
        name = f"{type(spec).__module__}.{type(spec).__name__}"
        raise invalid_field(path, f"{name} is not allowed here, a {wanted} is needed", hint)
    if spec.choice:
        fill(getattr(message, spec.choice), spec, f"{path}.{spec.choice}")
    else:
        fill(message, spec, path)


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's."""
    return value.item() if hasattr(value, "item") else value


def hint_of_class(value: Any, family: str) -> str:
    """ "pass cf.SGLD(...)" for the class SGLD of the family "Sampler", or for its name as text; "" for other values."""
    import chainfleet

    base = next(cls for cls in Spec.__subclasses__() if cls.__name__ == family)
    kinds = {cls.choice: cls for cls in base.__subclasses__()}
    close = difflib.get_close_matches(value.lower(), kinds, 1) if isinstance(value, str) else ()
    made = kinds[close[0]] if close else value
    if not isinstance(made, type) or not issubclass(made, base):
        return ""
    module = "" if made.__name__ in chainfleet.__all__ else made.__module__.rpartition(".")[2] + "."
    return f"pass cf.{module}{made.__name__}(...)"

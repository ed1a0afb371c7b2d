"""What a face offers, compared."""

import inspect


def public(face: type) -> dict[str, object]:
    """Public members, inherited ones included, descriptors as they are."""
    members = {name: inspect.getattr_static(face, name) for name in dir(face)}
    return {name: member for name, member in members.items() if not name.startswith("_")}


def function_of(member: object) -> object:
    """The plain function behind a member."""
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else member


def parameters(member: object) -> list[tuple[str, str, object]]:
    """Names, kinds and defaults; annotations may differ where a face returns its own classes."""
    function = function_of(member)
    if not callable(function):
        return []
    return [
        (parameter.name, parameter.kind.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def differences(there: type, blocking: type, *, allowed: set[str]) -> list[str]:
    """What a reader of one face would not find on the other."""
    ours, theirs = public(there), public(blocking)
    found = [f"only one face has {name}" for name in sorted((set(ours) ^ set(theirs)) - allowed)]
    for name in sorted(set(ours) & set(theirs)):
        if parameters(ours[name]) != parameters(theirs[name]):
            found.append(f"{name} takes {parameters(ours[name])} here, {parameters(theirs[name])} there")
        if inspect.getdoc(getattr(there, name)) != inspect.getdoc(getattr(blocking, name)):
            found.append(f"{name} has another docstring")
        if isinstance(ours[name], property) != isinstance(theirs[name], property):
            found.append(f"{name} is a property on one face only")
        if inspect.iscoroutinefunction(function_of(theirs[name])):
            found.append(f"{name} does not block")
    return found

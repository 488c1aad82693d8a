"""A folder of tests has the name of what it tests: of a folder of the package, or of a module."""

from pathlib import Path

import skpriv

TESTS, PACKAGE = Path(__file__).parent, Path(skpriv.__file__).parent
HELPERS = {"registry"}


def test_folders_of_tests_are_those_of_the_package():
    strange = []
    for folder in sorted(path for path in TESTS.rglob("*") if path.is_dir()):
        where = folder.relative_to(TESTS)
        if where.parts[0] in HELPERS or not list(folder.glob("*.py")):
            continue
        places = [PACKAGE]
        for name in where.parts:
            names = (name, f"_{name}", f"{name}.py", f"_{name}.py")
            places = [place / one for place in places for one in names if (place / one).exists()]
        if not places:
            strange.append(str(where))
    assert not strange


def test_every_room_has_a_folder_of_tests():
    rooms = {path.parent.name.lstrip("_") for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == {path.name for path in TESTS.iterdir() if path.is_dir()} - HELPERS - {
        "__pycache__"
    }

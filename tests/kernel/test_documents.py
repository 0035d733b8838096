"""Documents know where each of their values stands."""

from turnloom.kernel.documents import DeclarationFile, Place


def test_a_value_without_a_place_stands_where_the_nearest_one_around_it_does() -> None:
    document = DeclarationFile("f.yaml", {}, "", {(): Place(1), ("a",): Place(3, 2)})
    assert document.place(("a",)) == Place(3, 2)
    assert document.place(("a", "b", 0)) == Place(3, 2)
    assert document.place(("z",)) == Place(1)


def test_a_document_without_places_stands_in_its_first_line() -> None:
    assert DeclarationFile("f.yaml", {}, "").place(("a", 1)) == Place(1)

import pytest

from engine.analyses.fusion.shapes import parse_tensors


def test_shapes_and_types_become_elements_and_bytes():
    tensors = parse_tensors('"4096,1024;1024,3072"', "DT_BF16;FLOAT")
    assert tensors is not None
    assert tensors.elements == (4096 * 1024, 1024 * 3072)
    assert tensors.types == ("BF16", "FLOAT")
    assert tensors.bytes == (4096 * 1024 * 2, 1024 * 3072 * 4)
    assert tensors.largest_elements == 4096 * 1024
    assert tensors.total_bytes == 4096 * 1024 * 2 + 1024 * 3072 * 4


def test_a_scalar_has_one_element_and_an_empty_dimension_none():
    tensors = parse_tensors(";4096,0", "INT64;FLOAT")
    assert tensors is not None
    assert tensors.elements == (1, 0)


def test_an_input_that_was_not_passed_is_not_read():
    tensors = parse_tensors("8;", "FLOAT;DT_UNDEFINED")
    assert tensors is not None
    assert tensors.bytes == (32, 0)


def test_an_unknown_type_leaves_the_bytes_unknown_and_keeps_the_elements():
    tensors = parse_tensors("8;8", "FLOAT;FLOAT7")
    assert tensors is not None
    assert (tensors.bytes, tensors.total_bytes, tensors.largest_elements) == ((32, None), None, 8)


@pytest.mark.parametrize(
    ("shapes", "types"), [("N/A", "N/A"), ("", ""), ("8;8", "FLOAT"), ("8,x", "FLOAT"), ("-1", "FLOAT")]
)
def test_what_is_not_recorded_or_not_clear_is_unknown(shapes, types):
    assert parse_tensors(shapes, types) is None


def test_a_shape_no_tensor_can_have_is_unknown():
    assert parse_tensors("99999999999,99999999999", "FLOAT") is None
    assert parse_tensors("9" * 5000, "FLOAT") is None

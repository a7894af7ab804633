"""The commands as scripts use them: one JSON document, exit codes, one line per error."""

import json
import subprocess
import sys

import pytest

KERNEL = '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"stream":7,"correlation":%d}}'


@pytest.fixture
def kineto(tmp_path):
    def write(name, *kernels):
        rows = ",".join(KERNEL % (*kernel, index) for index, kernel in enumerate(kernels))
        path = tmp_path / name
        path.write_text(f'{{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{rows}]}}')
        return path

    return write


def test_info_is_one_document(cannscope, kineto):
    code, out, err = cannscope("info", kineto("a.json", ("gemm", 10, 5)), "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["schema"], document["format"]) == ("cannscope.info/1", "kineto")
    assert {"rank", "device", "events", "steps", "duration_us", "metadata"} <= document["ranks"][0].keys()
    assert document["ranks"][0]["events"] == 1


def test_analyze_has_every_key_of_the_contract_and_null_instead_of_nan(cannscope, kineto):
    code, out, _ = cannscope("analyze", kineto("a.json", ("gemm", 10, 5), ("gemm", 40, 5)), "--json")
    (rank,) = json.loads(out)["ranks"]
    keys = {
        "rank", "steps", "device", "memory", "idle", "operators", "modules", "fusion_candidates", "communication",
    }  # fmt: skip
    assert code == 0
    assert keys <= rank.keys()
    assert rank["device"]["overlap_ratio"] is None
    assert (rank["device"]["busy_us"], rank["device"]["span_us"]) == (10.0, 35.0)
    assert rank["operators"][0]["total_us"] == 10.0


def test_compare_says_what_changed(cannscope, kineto):
    slow, fast = kineto("slow.json", ("gemm", 0, 20), ("add", 20, 20)), kineto("fast.json", ("gemm", 0, 20))
    code, out, _ = cannscope("compare", slow, fast, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["speedup_ratio"] == 2.0
    assert document["operators"][0]["delta_us"] == -20.0
    code, out, _ = cannscope("compare", slow, fast)
    assert code == 0
    assert "-50.0%" in out


def test_converted_traces_read_back(cannscope, kineto, tmp_path):
    code, out, _ = cannscope(
        "convert", kineto("a.json", ("gemm", 10, 5)), tmp_path / "b.json", "--to", "chrome", "--json"
    )
    assert code == 0
    assert json.loads(out)["files"] == [str(tmp_path / "b.json")]
    _, out, _ = cannscope("info", tmp_path / "b.json", "--json")
    assert json.loads(out)["ranks"][0]["events"] == 1


@pytest.mark.parametrize("command", ["info", "analyze", "compare", "convert"])
def test_every_command_helps_with_an_example(cannscope, command):
    code, out, _ = cannscope(command, "--help")
    assert code == 0
    assert "Example: cannscope" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["info", "missing.json"], "no such file"),
        (["info"], "Missing argument"),
        (["analyze", "x", "--nonsense"], "--nonsense"),
        (["convert", "a", "b", "--to", "paper"], "paper"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(cannscope, arguments, says):
    code, out, err = cannscope(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_broken_file_says_what_where_and_what_to_do(cannscope, tmp_path):
    path = tmp_path / "broken.json"
    path.write_bytes(b"\x00\x01\x02")
    code, _, err = cannscope("analyze", path, "--json")
    assert code == 2
    assert str(path) in err
    assert "open one of" in err


def test_a_destination_that_cannot_be_written_is_exit_code_2(cannscope, kineto, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = cannscope(
        "convert", kineto("a.json", ("gemm", 10, 5)), tmp_path / "file" / "b.json", "--to", "chrome"
    )
    assert code == 2
    assert "choose another destination" in err


def test_the_engine_runs_without_qt(kineto):
    program = (
        "import sys; sys.modules['PySide6'] = None\n"
        "from engine.cli.app import build_cli, run\n"
        "sys.exit(run(build_cli(), sys.argv[1:]))"
    )
    result = subprocess.run(  # noqa: S603 - our own interpreter on our own text
        [sys.executable, "-c", program, "info", str(kineto("a.json", ("gemm", 10, 5))), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["schema"] == "cannscope.info/1"


def test_help_waits_for_no_package_that_few_commands_need():
    late = ("onnx", "onnx_ir", "onnxscript", "safetensors", "xlsxwriter", "pandas", "PySide6")
    program = (
        "import sys\n"
        "from engine.cli.app import build_cli, run\n"
        "assert run(build_cli(), ['--help']) == 0\n"
        f"print([name for name in {late} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(  # noqa: S603 - our own interpreter on our own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr.strip()) == (0, "[]")
    assert "Usage: cannscope" in result.stdout


def test_every_kind_of_capture_is_analyzed_to_finite_numbers(cannscope, captures):
    names = [
        "ascend/910b-cnn-ddp2-text/level0/rank0_ascend_pt",
        "pytorch/simple-add.json.gz",
        "pytorch/rank_non_gpu.json.gz",
    ]
    for name in names:
        code, out, err = cannscope("analyze", captures / name, "--json")
        assert code == 0, err
        assert "NaN" not in out
        code, out, err = cannscope("analyze", captures / name)
        assert code == 0, err


def test_names_are_printed_as_they_are_whatever_they_hold(cannscope, kineto, tmp_path):
    directory = tmp_path / "[/bold] :smile:"
    directory.mkdir(parents=True)
    path = kineto("a.json", ("[red]gemm[/x] \\ud800", 10, 5)).rename(directory / "a.json")
    for command in ("info", "analyze"):
        code, out, err = cannscope(command, path)
        assert (code, err) == (0, "")
        assert "smile" in out or command == "analyze"
    assert r"[red]gemm[/x] \ud800" in out
    code, out, _ = cannscope("analyze", path, "--json")
    assert code == 0
    assert json.loads(out)["ranks"][0]["operators"][0]["name"] == "[red]gemm[/x] \ud800"


def test_numbers_of_foreign_metadata_that_are_not_finite_are_null(cannscope, tmp_path):
    path = tmp_path / "a.json"
    row = KERNEL % ("gemm", 10, 5, 1)
    path.write_text(f'{{"schemaVersion":1,"deviceProperties":[],"x":{{"y":[NaN,-Infinity,1]}},"traceEvents":[{row}]}}')
    code, out, _ = cannscope("info", path, "--json")
    assert code == 0
    assert json.loads(out)["ranks"][0]["metadata"]["extra"]["x"] == {"y": [None, None, 1]}


def test_an_impossible_path_is_one_line_and_exit_code_2(cannscope):
    code, out, err = cannscope("info", "a" * 300)
    assert (code, out, err.count("\n")) == (2, "", 1)

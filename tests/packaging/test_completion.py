"""Shells complete exactly the options in --help."""

import re
import shutil
import subprocess

import pytest

COMMAND = re.compile(r"^  ([a-z]+) {2,}", re.M)
OPTION = re.compile(r"(?<![\w-])(-[a-z]|--[a-z][a-z-]*[a-z])(?![\w-])")


@pytest.fixture(scope="session")
def commands(good):
    """Every command and its options, as --help lists them."""
    found = COMMAND.findall(good("--help").decode())
    assert len(found) >= 11
    return {command: options_in(good(command, "--help").decode()) for command in found}


def options_in(text):
    names = set()
    for line in text.splitlines():
        listed = re.match(r"  (-\S+(?: -\S+)*)", line)  # "  -f,--foreground          stay in ..."
        if listed:
            names |= set(OPTION.findall(listed[1]))
    assert "--help" in names
    return names


@pytest.fixture(scope="session")
def complete(good, tmp_path_factory):
    """complete(*words): what bash offers for the last of the words."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path_factory.mktemp("bash") / "batchfs"
    script.write_bytes(good("completion", "bash"))

    def run(*words):
        line = ["batchfs", *words]
        # compopt says how readline treats the words, and may be called only by readline itself.
        program = (f'compopt() {{ :; }}; . {script}; COMP_WORDS=("$@"); '
                   f'COMP_CWORD={len(line) - 1}; '
                   '_batchfs && printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", program, "bash", *line], capture_output=True,
                              text=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    return run


def test_bash_offers_every_command(complete, commands):
    assert complete("") == {*commands, "-h", "--help", "--version"}
    assert complete("st") == {"statistics", "status"}


def test_bash_offers_every_option(complete, commands):
    for command, options in commands.items():
        assert complete(command, "-") == options, command


def test_bash_offers_the_words_of_an_option(complete):
    assert complete("cat", "era5.zarr", "--decode", "") == {"cf", "raw"}
    assert complete("mount", "--gpu", "") == {"auto", "off"}
    assert complete("batch", "--format", "s") == {"safetensors"}
    assert complete("mount", "-o", "no-p") == {"no-passthrough"}
    assert complete("mount", "-o", "view") == {"view="}
    # Files, which readline completes when nothing is offered.
    assert complete("mount", "--view", "") == complete("mount", "") == set()


def test_zsh_offers_every_command_and_option(good, commands, tmp_path):
    text = good("completion", "zsh").decode()
    for command, options in commands.items():
        assert f"    '{command}:" in text
        block = text.split(f"\n    {command})\n")[1].split(" ;;\n")[0]
        assert set(re.findall(r"'\*(--?[a-z-]+)\[", block)) == options, command
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed: its syntax was not checked")
    (tmp_path / "_batchfs").write_text(text)
    done = subprocess.run(["zsh", "-f", "-n", tmp_path / "_batchfs"], capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_offers_every_command_and_option(good, commands, tmp_path):
    text = good("completion", "fish").decode()
    for command, options in commands.items():
        assert f" -f -a {command} -d " in text
        lines = [line for line in text.splitlines() if f"seen_subcommand_from {command}'" in line]
        offered = {"--" + name for line in lines for name in re.findall(r" -l (\S+)", line)}
        offered |= {"-" + name for line in lines for name in re.findall(r" -s (\S+)", line)}
        assert offered == options, command
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed: its syntax was not checked")
    (tmp_path / "batchfs.fish").write_text(text)
    done = subprocess.run(["fish", "--no-execute", tmp_path / "batchfs.fish"], capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (0, "")
    asked = subprocess.run(["fish", "--no-config", "-c",
                            f"source {tmp_path}/batchfs.fish; complete -C 'batchfs cat --decode '"],
                           capture_output=True, text=True)
    assert [line.split("\t")[0] for line in asked.stdout.splitlines()] == ["cf", "raw"]


def test_an_unknown_shell_is_wrong_usage(fails):
    assert "SHELL" in fails(2, "completion", "csh")
    assert "SHELL" in fails(2, "completion")

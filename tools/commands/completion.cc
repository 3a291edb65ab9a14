// batchfs completion: generates shell completions from the tables that the command line itself is
// parsed with. Packages install the output; users do not call it.

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "tools/cli/command.h"

namespace batchfs {

namespace {

struct Offered {
  std::vector<std::string> names;  // as typed: "-f", "--foreground"
  std::string help;                // one line
  std::string value;               // metavariable of its value; empty for a flag
  std::vector<std::string> words;  // its possible values, if they are few

  bool takes_file() const { return value == "FILE" || value == "PATH" || value == "DIR"; }
};

struct OfferedCommand {
  std::string name, summary;
  std::vector<Offered> options;
  std::vector<std::string> positionals;
};

/// Splits alternatives: "raw|cf" are the words of an option, of "auto|off|N" two are.
std::vector<std::string> words_of(const std::string& type) {
  std::vector<std::string> words;
  if (type.find('|') == std::string::npos) return words;
  for (const std::string& word : split(type, '|')) {
    if (!word.empty() && !std::isupper(static_cast<unsigned char>(word[0]))) words.push_back(word);
  }
  return words;
}

OfferedCommand offered(const CLI::App& app) {
  OfferedCommand command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.positionals.push_back(option->get_name(true));
      continue;
    }
    Offered entry{{}, option->get_description(), {}, {}};
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) {
      // "allow_other" is a synonym of "allow-other"; only one is offered.
      if (name.find('_') == std::string::npos) entry.names.push_back("--" + name);
    }
    if (option->get_items_expected_max() > 0) {
      entry.value = option->get_type_name();
      entry.words = words_of(entry.value);
    }
    command.options.push_back(std::move(entry));
  }
  return command;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::vector<std::string> all_names(const OfferedCommand& command) {
  std::vector<std::string> names;
  for (const Offered& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Items for -o: the long options without their dashes.
std::vector<std::string> list_items(const OfferedCommand& command) {
  std::vector<std::string> items;
  for (const Offered& option : command.options) {
    const std::string& name = option.names.back();
    if (name.starts_with("--") && name != "--help")
      items.push_back(name.substr(2) + (option.value.empty() ? "" : "="));
  }
  return items;
}

// Bash: without a candidate, readline completes file names (-o default).

std::string bash_words(const std::vector<std::string>& words) {
  return "mapfile -t COMPREPLY < <(compgen -W '" + join(words, " ") + "' -- \"$word\")";
}

std::string bash(const OfferedCommand& program, const std::vector<OfferedCommand>& commands) {
  std::vector<std::string> first = all_names(program);
  for (const OfferedCommand& command : commands) first.push_back(command.name);
  std::string text =
      "# Completion of batchfs for bash, made by `batchfs completion bash`.\n\n"
      "_batchfs() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n    " +
      bash_words(first) +
      "\n    return\n  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const OfferedCommand& command : commands) {
    text += "    " + command.name + ")\n      case $before in\n";
    for (const Offered& option : command.options) {
      if (option.value.empty()) continue;
      text += "        " + join(option.names, "|") + ")\n          ";
      if (option.names == std::vector<std::string>{"-o"}) {
        text += "compopt -o nospace\n          " + bash_words(list_items(command)) + "\n          ";
      } else if (!option.words.empty()) {
        text += bash_words(option.words) + "\n          ";
      } else if (!option.takes_file()) {
        text += "compopt +o default\n          ";
      }
      text += "return ;;\n";
    }
    text += "      esac\n      [[ $word != -* ]] || " + bash_words(all_names(command)) + " ;;\n";
  }
  return text + "  esac\n}\n\ncomplete -o default -F _batchfs batchfs\n";
}

// Zsh.

/// Escapes text for single quotes, where `_arguments` interprets ':' and brackets.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"})
    text = replaced(text, special, std::string("\\") + special);
  return replaced(text, "'", "'\\''");
}

std::string zsh_action(const Offered& option) {
  if (!option.words.empty()) return "(" + join(option.words, " ") + ")";
  return option.value == "DIR" ? "_files -/" : option.takes_file() ? "_files" : " ";
}

std::string zsh(const std::vector<OfferedCommand>& commands) {
  std::string text =
      "#compdef batchfs\n# Completion of batchfs for zsh, made by `batchfs completion zsh`.\n\n"
      "_batchfs() {\n  local -a commands\n  commands=(\n";
  for (const OfferedCommand& command : commands)
    text += "    '" + command.name + ":" + zsh_text(command.summary) + "'\n";
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n"
      "    _arguments '--help[print this help]' '--version[print the version]'\n    return\n  fi\n"
      "  local command=${words[2]}\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const OfferedCommand& command : commands) {
    text += "    " + command.name + ")\n      _arguments";
    for (const Offered& option : command.options) {
      for (const std::string& name : option.names) {
        text += " \\\n        '*" + name + "[" + zsh_text(option.help) + "]";
        if (!option.value.empty()) text += ":" + zsh_text(option.value) + ":" + zsh_action(option);
        text += "'";
      }
    }
    for (const std::string& positional : command.positionals) {
      text += " \\\n        ':" + positional + ":" +
              (positional == "ARRAY" ? " "
               : positional == "DIR" ? "_files -/"
                                     : "_files") +
              "'";
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\n\n_batchfs \"$@\"\n";
}

// Fish.

std::string fish_text(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_option(const Offered& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.words.empty()) {
    text += " -x -a '" + join(option.words, " ") + "'";
  } else if (!option.value.empty()) {
    text += option.takes_file() ? " -r -F" : " -x";
  }
  return text + " -d " + fish_text(option.help);
}

std::string fish(const OfferedCommand& program, const std::vector<OfferedCommand>& commands) {
  std::string text = "# Completion of batchfs for fish, made by `batchfs completion fish`.\n\n";
  for (const Offered& option : program.options)
    text += "complete -c batchfs -n __fish_use_subcommand" + fish_option(option) + "\n";
  for (const OfferedCommand& command : commands) {
    text += "complete -c batchfs -n __fish_use_subcommand -f -a " + command.name + " -d " +
            fish_text(command.summary) + "\n";
    for (const Offered& option : command.options)
      text += "complete -c batchfs -n '__fish_seen_subcommand_from " + command.name + "'" +
              fish_option(option) + "\n";
  }
  return text;
}

}  // namespace

CommandAction setup_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("");
  return [shell, &app](Output& output) {
    const CLI::App& program = *app.get_parent();
    std::vector<OfferedCommand> commands;
    for (const CLI::App* command :
         program.get_subcommands([](const CLI::App* one) { return one->get_group() != ""; }))
      commands.push_back(offered(*command));
    output.write(*shell == "bash"  ? bash(offered(program), commands)
                 : *shell == "zsh" ? zsh(commands)
                                   : fish(offered(program), commands));
  };
}

}  // namespace batchfs

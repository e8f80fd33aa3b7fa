#include "format/base/text.h"
#include "man/completion/completion.h"

namespace xpu {
namespace {

std::string Joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

// The command that fills COMPREPLY with values of the option.
std::string ValueCommand(const CompletedOption& completed) {
  const std::string& value = completed.option.value;
  if (!completed.choices.empty()) {
    return Format("_xpu_{} \"$word\" '{}'", completed.is_list ? "list" : "words",
                  Joined(completed.choices, " "));
  }
  if (value == "FILE") return "_xpu_files \"$word\" -f";
  if (value.ends_with("DIR")) return "_xpu_files \"$word\" -d";
  if (value == "CAPTURE") return "_xpu_captures \"$word\"";
  if (value == "USER") return "_xpu_replies -u -- \"$word\"";
  return {};  // a number, a name: nothing is known of it
}

// A word after = or : is one of its own for readline, and so are these.
constexpr std::string_view kHelpers = R"(
_xpu_replies() { mapfile -t COMPREPLY < <(compgen "$@"); }
# _xpu_words WORD 'CHOICE...'
_xpu_words() {
  _xpu_replies -W "$2" -- "$1"
  [[ ${COMPREPLY[0]-} != *: ]] || compopt -o nospace 2>/dev/null
}
# _xpu_list WORD 'CHOICE...': behind the last comma.
_xpu_list() {
  local before=
  [[ $1 != *,* ]] || before=${1%,*},
  _xpu_replies -P "$before" -W "$2" -- "${1##*,}"
}
# _xpu_files WORD ACTION: -f or -d.
_xpu_files() {
  compopt -o filenames 2>/dev/null
  _xpu_replies "$2" -- "$1"
}
# Captures and directories; any file where there are none.
_xpu_captures() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -X '!*.xpu' -- "$1"; compgen -d -- "$1")
  ((${#COMPREPLY[@]})) || _xpu_replies -f -- "$1"
}
)";

constexpr std::string_view kFindProgram = R"(
  # Everything behind the program's name belongs to the program.
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) ((i++)); break ;;
      @TAKE_VALUE@)
        [[ ${COMP_WORDS[i + 1]-} == = ]] || ((i++))
        while [[ ${COMP_WORDS[i + 1]-} == [:=]* ]]; do ((i += 2)); done ;;
      -*) ;;
      *) break ;;
    esac
  done
  if ((i < COMP_CWORD)); then
    if declare -F _command_offset >/dev/null; then
      _command_offset "$i"
    else
      _xpu_files "$word" -f
    fi
    return
  fi
  if ((i == COMP_CWORD)) && { [[ $word != -* ]] || [[ $before == -- ]]; }; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -d -- "$word")
    return
  fi
)";

std::string Replaced(std::string_view text, std::string_view place, std::string_view with) {
  const size_t at = text.find(place);
  return std::string(text.substr(0, at)) + std::string(with) +
         std::string(text.substr(at + place.size()));
}

}  // namespace

std::string BashCompletion(const CompletedProgram& program) {
  std::vector<std::string> all;
  std::vector<std::string> with_value;
  std::vector<std::string> without_reply;  // of those
  std::string cases;
  for (const CompletedOption& completed : program.options) {
    const CommandLineOption& option = completed.option;
    all.insert(all.end(), option.names.begin(), option.names.end());
    if (option.value.empty() || option.names.empty()) continue;
    with_value.insert(with_value.end(), option.names.begin(), option.names.end());
    const std::string command = ValueCommand(completed);
    if (command.empty()) {
      without_reply.insert(without_reply.end(), option.names.begin(), option.names.end());
      continue;
    }
    AppendFormat(cases, "    {}) {}; return ;;\n", Joined(option.names, " | "), command);
  }
  std::string text =
      Format("# bash completion of {}, made from its options.\n{}", program.name, kHelpers);
  const std::string function = Replaced("_" + program.name, "-", "_");
  AppendFormat(text, "{}() {{\n", function);
  text += R"(  COMPREPLY=()
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  # --mode=gpu is three words.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)";
  if (program.runs_program) {
    text += Replaced(kFindProgram, "@TAKE_VALUE@", Joined(with_value, " | "));
  }
  AppendFormat(text, "  case $before in\n{}    {}) return ;;\n  esac\n", cases,
               Joined(without_reply, " | "));
  if (!program.runs_program) {
    text += "  if [[ $word != -* ]]; then\n    _xpu_captures \"$word\"\n    return\n  fi\n";
  }
  AppendFormat(text, "  _xpu_words \"$word\" '{}'\n}}\ncomplete -F {} {}\n", Joined(all, " "),
               function, program.name);
  return text;
}

}  // namespace xpu

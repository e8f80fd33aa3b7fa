// Completion for shells, made of the options that a program takes and of what its --help says of
// them. An option that only one of the two knows is an error: they cannot come to disagree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"

namespace xpu {

struct CompletedOption {
  CommandLineOption option;
  std::string about = {};                 // the line of --help
  std::vector<std::string> choices = {};  // fixed values
  bool is_list = false;                   // of choices, with commas
};

struct CompletedProgram {
  std::string name;
  std::vector<CompletedOption> options = {};
  // Words that are no options: a program and its arguments, or captures.
  bool runs_program = false;
};

Result<CompletedProgram> DescribeProgram(std::string_view name,
                                         std::vector<CommandLineOption> options,
                                         std::string_view help);

std::string BashCompletion(const CompletedProgram& program);
std::string ZshCompletion(const CompletedProgram& program);

// What the generator of a program's files does with its arguments: bash|zsh FILE.
int WriteCompletion(int argc, char** argv, const Result<CompletedProgram>& program);

}  // namespace xpu

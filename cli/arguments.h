// The command line of `rlx`: commands, their options, flags and positional arguments. CLI11 parses it. Only
// arguments.cpp includes CLI11, because each file that does takes 5 s more to compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rlx::cli {

/// Types of variables that an option sets. A list gets one element for each value on the command line.
template <class T>
concept ArgumentValue =
    std::same_as<T, std::string> || std::same_as<T, std::optional<std::string>> ||
    std::same_as<T, std::vector<std::string>> || std::same_as<T, int> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

/// An option, flag or positional argument of a command. Copies refer to the same one, and each call returns it, so that
/// calls chain. Help shows the checks in the order of the calls.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  /// Makes it required.
  Argument required() const;
  /// What stands for its value in the help text, such as N. A name that begins with FILE, PATH, DIR, FOLDER, MODEL or
  /// [NAME=]FILE is that of a path, which must not be empty.
  Argument type_name(const std::string& name) const;
  /// The heading of the help text under which it is listed.
  Argument group(const std::string& heading) const;
  /// Shows the variable's current value as the default in the help text.
  Argument show_default() const;
  /// For a list: each occurrence takes one value, so that a positional argument may follow.
  Argument one_value_each() const;
  /// For a list: one value holds several elements, separated by this character.
  Argument delimiter(char separator) const;

  /// Values outside of [min, max] are errors.
  Argument in_range(std::integral auto min, std::integral auto max) const {
    return in_integer_range(static_cast<std::int64_t>(min), static_cast<std::int64_t>(max));
  }
  Argument in_range(double min, double max) const;
  /// Negative values are errors.
  Argument not_negative() const;
  /// Values other than these are errors.
  Argument one_of(std::vector<std::string> values) const;
  /// A value for which `problem` returns a text is an error with this text.
  Argument check(std::function<std::string(const std::string&)> problem) const;

  /// `needs`: an error when `other` of the same command is absent. `excludes`: an error when it is present.
  Argument needs(Argument other) const;
  Argument excludes(Argument other) const;

 private:
  Argument in_integer_range(std::int64_t min, std::int64_t max) const;
  CLI::Option* option_;
};

class CommandLine;

/// A command of a CommandLine, which owns it. Copies refer to the same one.
class Command {
 public:
  Command(CLI::App* app, CommandLine& line) : app_(app), line_(&line) {}

  /// `names` are separated by commas: "-o,--output"; a name without dashes is a positional argument. Parsing sets
  /// `variable`, which must live as long as the CommandLine.
  template <ArgumentValue T>
  Argument add_option(const std::string& names, T& variable, const std::string& help) const;
  /// An option without a value: parsing sets `variable` when the flag is given.
  Argument add_flag(const std::string& names, bool& variable, const std::string& help) const;
  /// An option or flag had the name `old_name` in the last release: it still works, and says `new_name` once on the
  /// standard error. Help does not list it.
  void renamed(std::string old_name, std::string new_name) const;
  /// Text at the end of the command's help.
  void footer(const std::string& text) const;
  /// The function that runs the command after its arguments are parsed.
  void callback(std::function<void()> run) const;

 private:
  CLI::App* app_;
  CommandLine* line_;
};

/// The program's command line, which names exactly one command.
class CommandLine {
 public:
  /// `version` makes the text of --version. `footer` ends the help of the program and of every command that sets no
  /// other.
  CommandLine(const std::string& program, const std::string& about, std::function<std::string()> version,
              const std::string& footer);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add_command(const std::string& name, const std::string& about);
  std::vector<std::string> command_names() const;
  std::string help() const;
  /// Parses the arguments. Runs the callback of the command that they name, or prints the requested help or version,
  /// and returns 0. For wrong arguments it prints an error to the standard error and returns 2. Exceptions of the
  /// callback pass through.
  int run(int argc, const char* const* argv);

 private:
  friend class Command;
  struct RenamedOption {
    std::string command, old_name, new_name;
    mutable bool told = false;
  };
  std::string with_new_name(const std::string& command, const std::string& argument) const;

  std::unique_ptr<CLI::App> app_;
  std::vector<RenamedOption> renamed_;
};

}  // namespace rlx::cli

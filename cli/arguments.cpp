// The implementation on CLI11, which no other file includes.
#include "cli/arguments.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/terminal.h"
#include "rlx/error.h"

namespace rlx::cli {

Argument Argument::required() const { return Argument(option_->required()); }
Argument Argument::type_name(const std::string& name) const {
  for (const char* path : {"FILE", "PATH", "DIR", "FOLDER", "MODEL", "[NAME=]FILE"})
    if (name.starts_with(path)) {
      // Usually a variable of the shell that is not set. Without the check the option would count as not given.
      const auto problem = [](const std::string& given) {
        return std::string(given.empty() ? "must not be empty" : "");
      };
      option_->check(CLI::Validator(problem, ""));
      break;
    }
  return Argument(option_->type_name(name));
}
Argument Argument::group(const std::string& heading) const { return Argument(option_->group(heading)); }
Argument Argument::show_default() const { return Argument(option_->capture_default_str()); }
Argument Argument::one_value_each() const { return Argument(option_->allow_extra_args(false)); }
Argument Argument::delimiter(char separator) const { return Argument(option_->delimiter(separator)); }

Argument Argument::in_integer_range(std::int64_t min, std::int64_t max) const {
  return Argument(option_->check(CLI::Range(min, max)));
}
Argument Argument::in_range(double min, double max) const { return Argument(option_->check(CLI::Range(min, max))); }

// Used instead of CLI::NonNegativeNumber, whose message is longer.
Argument Argument::not_negative() const {
  return Argument(option_->check(
      [](const std::string& given) {
        return given.starts_with('-') ? concat_text("must be 0 or more, got ", given) : std::string();
      },
      "0 OR MORE"));
}

Argument Argument::one_of(std::vector<std::string> values) const {
  return Argument(option_->check(CLI::IsMember(std::move(values))));
}
Argument Argument::check(std::function<std::string(const std::string&)> problem) const {
  return Argument(option_->check(std::move(problem)));
}
Argument Argument::needs(Argument other) const { return Argument(option_->needs(other.option_)); }
Argument Argument::excludes(Argument other) const { return Argument(option_->excludes(other.option_)); }

namespace {

// Why `text` is no value of the integer type T; CLI11 takes the nearest value, and a negative one modulo 2^64.
template <class T>
std::string integer_problem(const std::string& text) {
  const bool negative = text.starts_with('-');
  char* end = nullptr;
  errno = 0;
  const unsigned long long size = std::strtoull(text.c_str() + (negative || text.starts_with('+') ? 1 : 0), &end, 0);
  if (*end != '\0' || end == text.c_str()) return {};  // CLI11 says that this is no number
  const auto most = static_cast<unsigned long long>(std::numeric_limits<T>::max());
  const unsigned long long least = std::is_signed_v<T> ? most + 1 : 0;
  if (errno != ERANGE && size <= (negative ? least : most)) return {};
  return concat_text("must be an integer from ", std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max(),
                     ", got ", text);
}

}  // namespace

template <ArgumentValue T>
Argument Command::add_option(const std::string& names, T& variable, const std::string& help) const {
  CLI::Option* option = app_->add_option(names, variable, help);
  if constexpr (std::integral<T>) option->check(CLI::Validator(integer_problem<T>, ""));
  return Argument(option);
}
template Argument Command::add_option(const std::string&, std::string&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Argument Command::add_option(const std::string&, int&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, float&, const std::string&) const;
template Argument Command::add_option(const std::string&, double&, const std::string&) const;

Argument Command::add_flag(const std::string& names, bool& variable, const std::string& help) const {
  return Argument(app_->add_flag(names, variable, help));
}
void Command::renamed(std::string old_name, std::string new_name) const {
  line_->renamed_.push_back({app_->get_name(), std::move(old_name), std::move(new_name)});
}
void Command::footer(const std::string& text) const { app_->footer(text); }
void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

CommandLine::CommandLine(const std::string& program, const std::string& about, std::function<std::string()> version,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(about, program)) {
  app_->set_version_flag("--version", std::move(version));
  app_->require_subcommand(1);
  app_->footer(footer);
}
CommandLine::~CommandLine() = default;

Command CommandLine::add_command(const std::string& name, const std::string& about) {
  return Command(app_->add_subcommand(name, about), *this);
}

std::vector<std::string> CommandLine::command_names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string CommandLine::help() const { return app_->help(); }

// `argument` of `command`, with the new name of a renamed option: "--products=int8" -> "--matmul-precision=int8".
std::string CommandLine::with_new_name(const std::string& command, const std::string& argument) const {
  for (const RenamedOption& o : renamed_) {
    if (o.command != command || !argument.starts_with(o.old_name)) continue;
    const std::string rest = argument.substr(o.old_name.size());
    if (!rest.empty() && rest.front() != '=') continue;
    if (!std::exchange(o.told, true))
      std::fprintf(stderr, "rlx: %s is now %s; the old name goes with the next release\n", o.old_name.c_str(),
                   o.new_name.c_str());
    return o.new_name + rest;
  }
  return argument;
}

namespace {
// "did you mean '--top-p'? " for the first argument that is written like an option and is none of the command.
std::string meant_option(const CLI::App& command, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view text = argv[i], name = text.substr(0, text.find('='));
    if (!name.starts_with("--") || std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string meant = did_you_mean(name, names);
    return meant.empty() ? meant : meant + " ";
  }
  return {};
}
}  // namespace

int CommandLine::run(int argc, const char* const* argv) {
  std::vector<std::string> arguments;  // in reverse, as CLI::App takes them
  bool options = true;                 // "--" ends them
  for (int i = 1; i < argc; ++i) {
    options = options && std::string_view(argv[i]) != "--";
    arguments.push_back(options ? with_new_name(argv[1], argv[i]) : argv[i]);
  }
  std::ranges::reverse(arguments);
  try {
    app_->parse(std::move(arguments));
    return 0;
  } catch (const CLI::Success& asked) {  // help or version
    return app_->exit(asked);
  } catch (const CLI::ParseError& e) {
    const std::vector<CLI::App*> given = app_->get_subcommands();
    const std::string meant = given.empty() ? std::string() : meant_option(*given.front(), argc, argv);
    const std::string command = given.empty() ? std::string() : given.front()->get_name() + " ";
    print_error(concat_text("rlx: ", e.what(), "\n  hint: ", meant, "`rlx ", command, "--help` lists the options\n"));
    return 2;
  }
}

}  // namespace rlx::cli

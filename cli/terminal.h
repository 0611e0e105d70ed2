// Reading files, checked output, a progress bar, and texts truncated to a width.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/output_file.h"
#include "rlx/text/tokenizer.h"

namespace rlx::cli {

/// The content of a file, or of the standard input for "-". Content compressed with gzip is decompressed. Errors:
/// NotFound and BadFile naming it.
std::string read_text(const std::string& path);
/// The lines of a text without their line ends (\n or \r\n). A last line without a line end counts; an empty one after
/// the last line end does not.
std::vector<std::string> split_lines(std::string_view text);

/// A file or the standard output for writing; a failed write is an error. The file is replaced by `close`. A failure
/// before that leaves an existing file unchanged.
class Output {
 public:
  /// "" and "-" are the standard output.
  explicit Output(const std::string& path);
  bool is_terminal() const;
  void write(std::string_view bytes);
  /// Flushes and checks; call once at the end.
  void close();

 private:
  std::optional<OutputFile> file_;  // none: the standard output
};

/// Before a signal ends the program, unfinished output files are deleted. A write beyond the limit of the file size is
/// an error, not a signal. Call once.
void handle_ending_signals();

/// A line on the standard error that redraws itself. Shown if the standard error is a terminal and the work takes more
/// than a second.
class ProgressBar {
 public:
  ProgressBar(std::string what, std::size_t total);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(std::size_t done);
  /// Removes the line, so that messages start in an empty one.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::size_t total_;
  Clock::time_point start_ = Clock::now(), drawn_at_ = start_;
  bool terminal_, drawn_ = false;
};

/// Notes on the standard error about truncated texts: the first few by name, then how many more.
void report_truncation(const std::vector<TruncationNotice>& notices,
                       const std::function<std::string(std::size_t)>& text_name);

/// Writes `text` to the standard error, control characters but line breaks and tabs as "\x1b": arguments appear in
/// errors, and a terminal obeys such characters.
void print_error(std::string text);

/// `text` in one line of at most `columns` characters: control characters become spaces, a truncated text ends in
/// "...".
std::string one_line(std::string_view text, std::size_t columns);
/// The width of the terminal on the standard output in columns; `otherwise` if the standard output is not a terminal.
std::size_t terminal_columns(std::size_t otherwise);

}  // namespace rlx::cli

// Reads files, writes with checks, and shows progress.
#include "cli/terminal.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>

#include <sys/ioctl.h>
#include <unistd.h>

#include "rlx/base/printable.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/formats/gzip.h"

namespace rlx::cli {

std::string read_text(const std::string& path) try {
  const bool standard = path == "-";
  std::error_code ignored;  // fopen reports a file that cannot be examined
  if (!standard && std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::BadFile, concat_text("'", path, "' is a folder"), "give the files in the folder");
  if (!standard && std::filesystem::is_character_file(path, ignored))
    throw Error(ErrorCode::BadFile, concat_text("'", path, "' is a device file, which may never end"),
                "give a file, a pipe, or - for the standard input");
  std::FILE* file = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (!file) throw Error(ErrorCode::NotFound, concat_text("cannot read '", path, "': ", std::strerror(errno)));
  std::string out;
  char block[1 << 16];
  std::size_t n = 0;
  while ((n = std::fread(block, 1, sizeof block, file)) > 0) out.append(block, n);
  const bool failed = std::ferror(file) != 0;
  const int reason = errno;
  if (!standard) std::fclose(file);
  if (failed)
    throw Error(ErrorCode::BadFile,
                concat_text("cannot read ", standard ? "the standard input" : concat_text("'", path, "'"), ": ",
                            std::strerror(reason)));
  const std::string name = standard ? "the standard input" : concat_text("'", path, "'");
  if (is_gzip(out)) out = gunzip(out, standard ? "the standard input" : path);
  if (const auto foreign = foreign_file(std::string_view(out).substr(0, 256)); foreign && foreign->is_no_text)
    throw Error(ErrorCode::BadFile, concat_text(name, " is ", foreign->what), std::string(foreign->hint));
  return std::string(without_bom(out));
} catch (const std::bad_alloc&) {
  throw Error(ErrorCode::OutOfMemory, concat_text(path == "-" ? "the standard input" : concat_text("'", path, "'"),
                                                  " does not fit into memory"));
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    out.emplace_back(line);
  }
  return out;
}

Output::Output(const std::string& path) {
  if (!path.empty() && path != "-") file_.emplace(path);
}
bool Output::is_terminal() const { return !file_ && isatty(STDOUT_FILENO) != 0; }

namespace {

[[noreturn]] void fail_standard_output() {
  throw Error(ErrorCode::BadFile, concat_text("cannot write the standard output: ", std::strerror(errno)));
}

// Ends the process by the signal, so that its parent sees the signal.
extern "C" void end_by_signal(int signal) {
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void Output::write(std::string_view bytes) {
  if (file_)
    file_->write(bytes);
  else if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
    fail_standard_output();
}
void Output::close() {
  if (file_)
    file_->commit();
  else if (std::fflush(stdout) != 0)
    fail_standard_output();
}

void handle_ending_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU}) {
    // Signals that are ignored stay ignored: nohup and shells without job control set this on purpose.
    if (std::signal(signal, end_by_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  install_sigbus_guard(OnLostPage::Say);
}

ProgressBar::ProgressBar(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::update(std::size_t done) {
  using std::chrono::duration;
  if (!terminal_ || total_ == 0) return;
  const Clock::time_point now = Clock::now();
  const double elapsed = duration<double>(now - start_).count();
  if (elapsed < 1 || (drawn_ && duration<double>(now - drawn_at_).count() < 0.1)) return;
  constexpr int kWidth = 30;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const int filled = static_cast<int>(share * kWidth);
  const double left = done ? elapsed / share - elapsed : 0;
  std::fprintf(stderr, "\r%s [%.*s%*s] %zu/%zu, %.0f s left \x1b[K", what_.c_str(), filled,
               "##############################", kWidth - filled, "", done, total_, left);
  std::fflush(stderr);
  drawn_ = true;
  drawn_at_ = now;
}

void ProgressBar::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void report_truncation(const std::vector<TruncationNotice>& notices,
                       const std::function<std::string(std::size_t)>& text_name) {
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < notices.size() && i < kShown; ++i)
    std::fprintf(stderr, "note: %s\n", notices[i].text(text_name(notices[i].text_index)).c_str());
  if (notices.size() > kShown) std::fprintf(stderr, "note: %zu more texts were truncated\n", notices.size() - kShown);
}

void print_error(std::string text) {
  escape_controls(text);
  std::fputs(text.c_str(), stderr);
}

std::string one_line(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at + 1;
    while (next < text.size() && is_utf8_continuation(text[next])) ++next;
    if (width + 3 >= columns && text.size() - next > 3) return out + "...";
    if (next == at + 1 && (static_cast<unsigned char>(text[at]) < 0x20 || text[at] == 0x7f))
      out += ' ';
    else
      out.append(text.substr(at, next - at));
    ++width;
    at = next;
  }
  return out;
}

std::size_t terminal_columns(std::size_t otherwise) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return otherwise;
}

}  // namespace rlx::cli

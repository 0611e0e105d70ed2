// Reads passages and prints matches.
#include "cli/searchable.h"

#include <algorithm>

#include "cli/arguments.h"
#include "cli/terminal.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx::cli {
namespace {

// The text of a file. Errors: those of read_text, BadFile for a file that is not text.
std::string read_searchable(const std::string& path) {
  const std::string text = read_text(path);
  constexpr std::pair<std::string_view, std::string_view> kPacked[] = {{"\xfd"
                                                                        "7zXZ",
                                                                        "xz"},
                                                                       {"\x28\xb5\x2f\xfd", "zstd"},
                                                                       {"BZh", "bzip2"},
                                                                       {"PK\x03\x04", "zip"}};
  for (const auto& [start, name] : kPacked)
    if (text.starts_with(start))
      throw Error(ErrorCode::BadFile, concat_text(path, ": compressed with ", name), "only gzip is supported");
  if (text.find('\0') != std::string::npos) throw Error(ErrorCode::BadFile, concat_text(path, ": a binary file"));
  if (auto bad = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw Error(ErrorCode::BadFile, concat_text(path, ":", line, ": not valid UTF-8"), "convert it with iconv");
  }
  return text;
}

}  // namespace

std::vector<Found> read_passages(const SearchableOptions& args) {
  std::vector<Found> out;
  std::vector<Diagnostic> left_out;
  for (std::size_t f = 0; f < args.files.size(); ++f) {
    std::string text;
    try {
      text = read_searchable(args.files[f]);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::BadFile) throw;
      left_out.push_back(e.diagnostic());
      continue;
    }
    for (Passage& p : args.paragraphs ? split_into_paragraphs(text) : split_into_lines(text))
      out.push_back({f, std::move(p)});
  }
  if (out.empty() && !left_out.empty()) throw Error(left_out.front());
  if (out.empty()) throw Error(ErrorCode::InvalidArgument, "the files hold no text to search");
  for (const Diagnostic& d : left_out) std::fprintf(stderr, "note: left out: %s\n", d.message.c_str());
  return out;
}

std::string place_of(const SearchableOptions& options, const Found& found) {
  return concat_text(options.files[found.file], ":", found.passage.line);
}

void write_matches(const SearchableOptions& args, const MatchFormat& format, const std::vector<Found>& found,
                   const std::vector<Match>& best) {
  Output out("-");
  if (format.name == "json") {
    JsonWriter json;
    json.begin_array();
    for (const Match& m : best) {
      const Found& f = found[m.index];
      json.begin_object()
          .member("score", m.score)
          .member("file", args.files[f.file])
          .member("line", static_cast<std::int64_t>(f.passage.line));
      json.member("text", f.passage.text).end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    const std::size_t columns = terminal_columns(120);
    for (const Match& m : best) {
      const Found& f = found[m.index];
      char score[16];
      std::snprintf(score, sizeof score, "%7.4f", m.score);
      const std::string place = concat_text(score, "  ", place_of(args, f), "  ");
      const std::size_t room = args.paragraphs ? 400 : columns > place.size() + 40 ? columns - place.size() : 40;
      out.write(concat_text(place, one_line(f.passage.text, room), "\n"));
    }
  }
  out.close();
}

void add_searchable_options(Command cmd, SearchableOptions& options) {
  cmd.add_option("files", options.files, "Text files, gzip too ('-': standard input); others are left out with a note")
      .required()
      .type_name("FILE");
  cmd.add_flag("--paragraphs", options.paragraphs, "Take whole paragraphs (separated by blank lines) instead of lines");
}

void add_match_format(Command cmd, MatchFormat& format) {
  cmd.add_option("--format", format.name, "Format of the output").one_of({"text", "json"}).show_default();
}

}  // namespace rlx::cli

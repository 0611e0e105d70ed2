// Reads passages and prints matches.
#include "cli/searchable.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/arguments.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/base/printable.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx::cli {
namespace {

constexpr std::size_t kNamedLeftOut = 5;

// The text of a file. Errors: those of read_text, BadFile for a file that is not text.
std::string read_searchable(const std::string& path) {
  std::string text = read_text(path);
  check_searchable_text(text, path);
  return text;
}

// Adds the text of a file that was named itself. Pipes and the standard input too.
void add_named_text(const std::string& path, std::vector<NamedText>& texts, std::vector<LeftOutFile>& left_out) {
  try {
    texts.push_back({path, read_searchable(path)});
  } catch (const Error& e) {
    if (e.code() != ErrorCode::BadFile) throw;
    left_out.push_back({e.diagnostic()});
  }
}

// JSON is UTF-8, and names of files may be any bytes.
std::string utf8_name(std::string_view name) {
  std::string out;
  while (const auto bad = find_invalid_utf8(name)) {
    out.append(name.substr(0, *bad)).append("\xEF\xBF\xBD");
    name.remove_prefix(*bad + 1);
  }
  return out.append(name);
}

std::string one_printed_line(std::string_view text) { return printable(text, text.size() * 4 + 8); }

std::string printed_place(const PassagePlace& place) {
  return concat_text(one_printed_line(place.file), ":", place.line);
}

void note_left_out(const Diagnostic& why) {
  std::fprintf(stderr, "note: left out: %s\n", one_printed_line(why.message).c_str());
}

}  // namespace

FileSelection FolderOptions::selection() const {
  FileSelection out;
  out.globs = globs, out.hidden = hidden, out.ignore_files = !no_ignore;
  out.max_bytes = static_cast<std::uint64_t>(max_mib) << 20;
  return out;
}

PassageKind FolderOptions::kind(PassageKind otherwise) const {
  for (const PassageKind kind : {PassageKind::Lines, PassageKind::Paragraphs, PassageKind::Chunks})
    if (passages && *passages == passage_kind_name(kind)) return kind;
  return otherwise;
}

TextIndexOptions FolderOptions::index_options(PassageKind otherwise) const {
  if (chunks.overlap > chunks.max_tokens / 2)
    throw UsageError(ErrorCode::InvalidArgument,
                     concat_text("chunks of ", chunks.max_tokens, " tokens cannot overlap by ", chunks.overlap),
                     "--overlap is at most half of --chunk-tokens");
  TextIndexOptions out;
  out.files = selection(), out.passages = kind(otherwise), out.chunks = chunks;
  return out;
}

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
  for (const Diagnostic& d : left_out) note_left_out(d);
  return out;
}

std::vector<NamedText> read_texts_of(const std::vector<std::string>& paths, const FolderOptions& options) {
  std::vector<NamedText> texts;
  std::vector<LeftOutFile> left_out;
  std::set<std::string> read;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path == "-" || !std::filesystem::is_directory(path, ignored)) {
      if (read.insert(std::filesystem::absolute(path).lexically_normal().string()).second)
        add_named_text(path, texts, left_out);
      continue;
    }
    for (const TextFile& file : find_text_files(std::span(&path, 1), options.selection(), &left_out)) {
      if (!read.insert(std::filesystem::absolute(file.path).lexically_normal().string()).second) continue;
      try {
        if (looks_binary(file.path))
          left_out.push_back({{ErrorCode::BadFile, file.path + ": a binary file", {}, {}}, true});
        else
          texts.push_back({file.path, read_text_file(file.path)});
      } catch (const Error& e) {
        if (e.code() != ErrorCode::BadFile && e.code() != ErrorCode::NotFound) throw;
        left_out.push_back({e.diagnostic()});
      }
    }
  }
  const bool blank = std::all_of(texts.begin(), texts.end(), [](const NamedText& t) {
    return t.text.find_first_not_of(" \t\r\v\f\n") == std::string::npos;
  });
  if (blank && !left_out.empty()) throw Error(left_out.front().why);
  if (blank) throw Error(ErrorCode::InvalidArgument, "the files hold no text to search");
  report_left_out(left_out);
  return texts;
}

void report_left_out(const std::vector<LeftOutFile>& files) {
  std::size_t named = 0, others = 0, binary = 0;
  for (const LeftOutFile& file : files) {
    if (file.binary)
      ++binary;
    else if (++named > kNamedLeftOut)
      ++others;
    else
      note_left_out(file.why);
  }
  if (others) std::fprintf(stderr, "note: left out: %zu more\n", others);
  if (binary) std::fprintf(stderr, "note: left out: %zu binary file%s\n", binary, binary == 1 ? "" : "s");
}

std::string place_of(const SearchableOptions& options, const Found& found) {
  return concat_text(options.files[found.file], ":", found.passage.line);
}

std::vector<ShownMatch> shown_matches(const SearchableOptions& args, const std::vector<Found>& found,
                                      const std::vector<Match>& matches) {
  std::vector<ShownMatch> out;
  for (const Match& m : matches) {
    const Found& f = found[m.index];
    out.push_back({m.score, f.passage.text, {{args.files[f.file], f.passage.line}}});
  }
  return out;
}

void write_matches(const MatchFormat& format, bool whole, const std::vector<ShownMatch>& matches) {
  Output out("-");
  if (format.name == "json") {
    JsonWriter json;
    const auto place = [&](const PassagePlace& p) {
      json.member("file", utf8_name(p.file)).member("line", static_cast<std::int64_t>(p.line));
    };
    json.begin_array();
    for (const ShownMatch& m : matches) {
      json.begin_object().member("score", m.score);
      place(m.places.front());
      json.member("text", m.text);
      if (m.places.size() > 1) {
        json.key("also").begin_array();
        for (std::size_t i = 1; i < m.places.size(); ++i) {
          json.begin_object();
          place(m.places[i]);
          json.end_object();
        }
        json.end_array();
      }
      json.end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    const std::size_t columns = terminal_columns(120);
    for (const ShownMatch& m : matches) {
      char score[16];
      std::snprintf(score, sizeof score, "%7.4f", m.score);
      const std::string more = m.places.size() > 1 ? concat_text(" (and ", m.places.size() - 1, " more)") : "";
      const std::string place = concat_text(score, "  ", printed_place(m.places.front()), more, "  ");
      const std::size_t room = whole ? 400 : columns > place.size() + 40 ? columns - place.size() : 40;
      out.write(concat_text(place, one_line(m.text, room), "\n"));
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

std::vector<Argument> add_folder_options(Command cmd, FolderOptions& options, const std::string& default_passages) {
  const std::string heading = "Files and passages";
  return {
      cmd.add_option("-g,--glob", options.globs,
                     "Files of folders to read, or with '!' to leave out, as in .gitignore: '*.md', '!old/'")
          .type_name("GLOB")
          .one_value_each()
          .group(heading),
      cmd.add_flag("--hidden", options.hidden, "Read files and folders whose names begin with a dot too")
          .group(heading),
      cmd.add_flag("--no-ignore", options.no_ignore, "Read what .gitignore and .ignore files leave out too")
          .group(heading),
      cmd.add_option("--max-size", options.max_mib, "Largest file of a folder to read, in MiB")
          .in_range(1, 1024)
          .show_default()
          .group(heading),
      cmd.add_option("--passages", options.passages, "Split texts into these; default " + default_passages)
          .one_of({"lines", "paragraphs", "chunks"})
          .group(heading),
      cmd.add_option("--chunk-tokens", options.chunks.max_tokens,
                     "Largest passage, up to what the model reads; longer lines and paragraphs become chunks")
          .in_range(1, 1 << 20)
          .show_default()
          .group(heading),
      cmd.add_option("--overlap", options.chunks.overlap, "Tokens that a chunk repeats of the one before")
          .in_range(0, 1 << 19)
          .show_default()
          .group(heading),
  };
}

void add_match_format(Command cmd, MatchFormat& format) {
  cmd.add_option("--format", format.name, "Format of the output").one_of({"text", "json"}).show_default();
}

}  // namespace rlx::cli

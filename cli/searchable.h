// Reading passages of text files and printing matches, for `rlx search`, `rlx index` and `rlx rerank`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "rlx/models/passages.h"
#include "rlx/models/text_index.h"

namespace rlx::cli {

/// The files to read, and how they are split into passages.
struct SearchableOptions {
  std::vector<std::string> files;
  bool paragraphs = false;
};

/// Which files of folders are read, and how all files are split.
struct FolderOptions {
  std::vector<std::string> globs;
  bool hidden = false, no_ignore = false;
  std::int64_t max_mib = 16;
  std::optional<std::string> passages;
  ChunkOptions chunks;

  FileSelection selection() const;
  /// The passages that --passages names, or `otherwise`.
  PassageKind kind(PassageKind otherwise) const;
  /// The options without `vectors`. UsageError for chunks that overlap too much.
  TextIndexOptions index_options(PassageKind otherwise) const;
};

struct MatchFormat {
  std::string name = "text";  // or "json"
};

struct Found {
  std::size_t file = 0;
  Passage passage;
};

/// A passage to print. Passages with the same text are one.
struct ShownMatch {
  double score = 0;
  std::string text;
  std::vector<PassagePlace> places;
};

/// A text to search.
struct NamedText {
  std::string name, text;
};

void add_searchable_options(Command cmd, SearchableOptions& options);
/// Returns the arguments.
std::vector<Argument> add_folder_options(Command cmd, FolderOptions& options, const std::string& default_passages);
void add_match_format(Command cmd, MatchFormat& format);

/// The passages of all files. Files that are not text are left out with a note; an error if nothing is left.
std::vector<Found> read_passages(const SearchableOptions& options);
/// The texts of files, and of those in folders, each once. Files that are not text are left out with a note. Errors:
/// those of find_text_files; BadFile if nothing is left.
std::vector<NamedText> read_texts_of(const std::vector<std::string>& paths, const FolderOptions& options);
/// Notes on the standard error: the first few by name, then how many more.
void report_left_out(const std::vector<LeftOutFile>& files);
/// "notes.txt:12".
std::string place_of(const SearchableOptions& options, const Found& found);
/// The matches of `found`, in their order.
std::vector<ShownMatch> shown_matches(const SearchableOptions& options, const std::vector<Found>& found,
                                      const std::vector<Match>& matches);
/// Prints passages; `whole`: up to 400 characters of each, else what fits into a line.
void write_matches(const MatchFormat& format, bool whole, const std::vector<ShownMatch>& matches);

}  // namespace rlx::cli

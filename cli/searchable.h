// Reading passages of text files and printing matches, for `rlx search` and `rlx rerank`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "rlx/models/passages.h"

namespace rlx::cli {

/// The files to read, and how they are split into passages.
struct SearchableOptions {
  std::vector<std::string> files;
  bool paragraphs = false;
};

struct MatchFormat {
  std::string name = "text";  // or "json"
};

struct Found {
  std::size_t file = 0;
  Passage passage;
};

void add_searchable_options(Command cmd, SearchableOptions& options);
void add_match_format(Command cmd, MatchFormat& format);

/// The passages of all files. Files that are not text are left out with a note; an error if nothing is left.
std::vector<Found> read_passages(const SearchableOptions& options);
/// "notes.txt:12".
std::string place_of(const SearchableOptions& options, const Found& found);
/// Prints the passages that `matches` name, in their order.
void write_matches(const SearchableOptions& options, const MatchFormat& format, const std::vector<Found>& found,
                   const std::vector<Match>& matches);

}  // namespace rlx::cli

// The files of a repository: what a hub lists, which of them rlx reads, and names that must not leave a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/hub/hub.h"

namespace rlx {

struct HubFile {
  std::string path;        // relative, with "/"
  std::uint64_t size = 0;  // bytes
  std::string checksum;    // SHA-256 (64 digits), or the name of a git blob (40 digits)
};

/// One commit of a repository.
struct HubListing {
  std::string commit;
  std::vector<HubFile> files;

  const HubFile* find(std::string_view path) const;
};

/// Reads the hub's answer about a revision. `source` names it in errors. Errors: BadFile, also for a file whose name
/// could lead out of a folder.
HubListing parse_listing(std::string_view json, const std::string& source);

/// Whether `path` is relative and stays below its folder, without control characters or "\".
bool is_safe_path(std::string_view path);
/// Whether all characters are hexadecimal digits in lower case, `digits` of them.
bool is_hex(std::string_view text, std::size_t digits);

/// What a name asks for.
struct HubChoice {
  std::vector<std::string> files;    // to be there first
  std::string index;                 // an index of shards; its shards are wanted too
  std::vector<std::string> weights;  // to be there last, so that a folder that has them is complete
  std::string result;                // the file that the name stands for; "": the folder
};
/// Errors: NotFound for a file that is not there, InvalidArgument where several fit, Unsupported for a repository
/// without weights that rlx reads.
HubChoice choose_files(const HubName& name, const std::vector<HubFile>& files);

/// The shards that an index (model.safetensors.index.json) names, each once. Errors: BadFile.
std::vector<std::string> shards_of(std::string_view json, const std::string& source);

/// "1.2 GB", of 10^9 bytes.
std::string size_text(std::uint64_t bytes);

}  // namespace rlx

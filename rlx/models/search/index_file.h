// The bytes of an index file: checked views of a mapping, and the writer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/mapped_file.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/models/text_index.h"

namespace rlx {

/// What the header says besides the sections.
struct IndexHead {
  std::vector<std::string> paths{};
  TextIndexOptions options{};
  std::string model{}, model_fingerprint{};
  std::int64_t width = 0;       // elements of a vector
  std::int64_t started_ns = 0;  // when the files were listed: later changes may have the same times
};

struct IndexedFile {
  std::string_view path{};
  std::uint32_t root = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  Fingerprint content{};
  std::uint32_t first_place = 0, num_places = 0;
};
struct IndexedPlace {
  std::uint32_t passage = 0, line = 0;
};
struct IndexedPassage {
  std::string_view text{};
  Fingerprint checksum{};
};

/// A mapped index. Every number is checked against the file when it is opened, so the calls need no checks. The caller
/// holds a GuardedReads.
class IndexFile {
 public:
  explicit IndexFile(const std::string& path);
  /// Whether a file begins like an index of any version.
  static bool is_index(const std::string& path);

  const IndexHead& head() const { return head_; }
  const MappedFile& mapping() const { return file_; }
  std::size_t num_files() const { return num_files_; }
  std::size_t num_places() const { return num_places_; }
  std::size_t num_passages() const { return num_passages_; }
  IndexedFile file(std::size_t i) const;
  IndexedPlace place(std::size_t i) const;
  IndexedPassage passage(std::size_t i) const;
  /// The file that a place lies in.
  std::size_t file_of_place(std::size_t place) const;
  const std::byte* vector(std::size_t passage) const;
  /// 1 for f16.
  float scale(std::size_t passage) const;
  /// Errors: BadFile when a vector was altered.
  void verify_vectors() const;
  /// The text of a passage. Errors: BadFile when it was altered.
  std::string checked_text(std::size_t passage) const;

  /// The bytes of a vector.
  static std::size_t vector_bytes(const IndexHead& head);

  /// Throws BadFile naming the index.
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  std::size_t read_head();
  void check_records() const;
  std::string_view section(std::string_view name, std::uint64_t bytes, std::size_t& at) const;

  MappedFile file_;
  IndexHead head_;
  std::size_t num_files_ = 0, num_places_ = 0, num_passages_ = 0;
  std::uint64_t path_bytes_ = 0, text_bytes_ = 0;
  Fingerprint tables_sum_, vectors_sum_;
  std::string_view files_, places_, passages_, paths_, texts_, scales_, vectors_;
};

/// The content of a new index. Its texts may be those of an older one that is still mapped.
struct IndexContent {
  IndexHead head{};
  std::vector<IndexedFile> files{};
  std::vector<IndexedPlace> places{};
  std::vector<IndexedPassage> passages{};
  std::string scales{}, vectors{};
};
/// Replaces the file `path`. Errors: those of OutputFile; InvalidArgument for a header or text that is too large.
void write_index(const std::string& path, const IndexContent& content);

/// The checksum of a text.
inline Fingerprint text_checksum(std::string_view text) { return fingerprint_bytes(text.data(), text.size()); }

}  // namespace rlx

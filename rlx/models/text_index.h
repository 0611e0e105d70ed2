// An index of the passages in text files: their texts and vectors in one file, which a search maps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/models/passages.h"
#include "rlx/models/text_files.h"
#include "rlx/tensor/dtype.h"

namespace rlx {

class SentenceEncoder;

/// How files are split into passages. Passages that are too long for a chunk are split in every case.
enum class PassageKind : std::uint8_t { Lines, Paragraphs, Chunks };
/// "lines", "paragraphs", "chunks".
std::string_view passage_kind_name(PassageKind kind);

/// The passages of a text, each with at most `chunks.max_tokens` tokens. Errors: those of split_into_chunks.
std::vector<Passage> split_text(std::string_view text, PassageKind kind, const Tokenizer& tokenizer,
                                const ChunkOptions& chunks);

struct TextIndexOptions {
  FileSelection files{};
  PassageKind passages = PassageKind::Chunks;
  ChunkOptions chunks{};       // `max_tokens` is at most what the model reads
  DType vectors = DType::F16;  // element type of the saved vectors: F16, or I8 with one scale for each vector
  bool check_content = false;  // also reads files whose size and times are those of the index

  friend bool operator==(const TextIndexOptions&, const TextIndexOptions&) = default;
};

/// What an update did.
struct TextIndexUpdate {
  std::size_t files = 0, unchanged = 0, added = 0, changed = 0, removed = 0;  // `removed`: no longer in the folders
  std::size_t passages = 0, embedded = 0;  // different ones in the index; those whose vectors were computed
  bool written = false;                    // false: the file was up to date
  std::vector<LeftOutFile> left_out{};
  std::string rebuilt{};  // why vectors of an earlier index were not used; empty: they were, or there was none
};

/// The place of a passage.
struct PassagePlace {
  std::string file;  // an absolute path
  std::size_t line = 1;
};

/// A passage that a search found. Passages with the same text are one, with several places.
struct IndexMatch {
  double score = 0;  // the cosine with the query
  std::string text{};
  std::vector<PassagePlace> places{};
};

/// An index file, mapped. One object serves several threads.
///
/// File version 1, numbers little-endian: "RLXINDEX", u32 version, u32 bytes of the header, the header, its checksum.
/// The header is JSON: the folders, the options, the model's folder and SentenceEncoder::fingerprint, the sizes of the
/// sections and their checksums. Then follow the sections, each from a multiple of 64 on, with zeros between them:
///   files     64 bytes each: u64 start and u32 length of its path, u32 index of its folder, u64 size, i64 mtime and
///             ctime in ns, checksum of its text, u32 first of its places, u32 number of them
///   places    8 bytes each: u32 passage, u32 line
///   passages  32 bytes each: u64 start and u32 length of its text, u32 zero, checksum of the text
///   paths     UTF-8 or other bytes of the system
///   texts     UTF-8
///   scales    f32 for each vector of type i8, else nothing
///   vectors   [passages, width] f16 or i8, of length 1
/// Checksums are xxh3-128, low half first; that of several sections is the checksum of theirs. The header has one of
/// files, places, passages and paths, and one of scales and vectors. Those of texts and vectors are verified when they
/// are used, the others by `open`.
class TextIndex {
 public:
  /// Errors: NotFound; BadFile for a file of another kind or version, truncated, too long or altered.
  static TextIndex open(const std::string& path);
  TextIndex(TextIndex&&) noexcept;
  TextIndex& operator=(TextIndex&&) noexcept;
  ~TextIndex();

  /// The `count` passages closest to the query, best first. Errors: InvalidArgument for an encoder with other vectors
  /// than those of the index; BadFile for texts or vectors that were altered; those of SentenceEncoder::embed.
  std::vector<IndexMatch> search(SentenceEncoder& encoder, const std::string& query, std::size_t count) const;

  std::size_t num_files() const;
  std::size_t num_passages() const;
  std::size_t size_bytes() const;
  /// The folders and files that it was made of, as absolute paths, and the options.
  const std::vector<std::string>& paths() const;
  const TextIndexOptions& options() const;
  /// The folder of the model when the index was made, an absolute path.
  const std::string& model() const;
  /// Number of elements of a vector.
  std::int64_t dimensions() const;
  /// Whether the file at an absolute path has the size and times of the index. False for one that it does not hold.
  bool is_current(const std::string& file) const;

 private:
  struct Impl;
  explicit TextIndex(std::unique_ptr<Impl> impl);
  const Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

/// Writes the index of the text in `paths`, files and folders, to the file `path`. An index that is there already gives
/// what did not change: files with the same size and times are not read, and passages with the same text, in whichever
/// file, keep their vectors. The file is replaced as a whole, every minute of long work too, so that work that was
/// stopped continues where it was. `progress` gets the number of embedded passages and that of all to embed. Errors:
/// those of find_text_files, SentenceEncoder::embed and OutputFile; BadFile where `path` is a file of another kind;
/// InvalidArgument for options out of range, or no text.
TextIndexUpdate update_text_index(const std::string& path, std::span<const std::string> paths, SentenceEncoder& encoder,
                                  const TextIndexOptions& options = {},
                                  const std::function<void(std::size_t, std::size_t)>& progress = nullptr);

}  // namespace rlx

// Keeps the passages of files with their vectors, brings them up to date, and searches them.
#include "rlx/models/text_index.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "rlx/base/stop_request.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/search/index_file.h"
#include "rlx/models/search/vector_rows.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// Texts that are embedded between two looks at the clock.
constexpr std::size_t kEmbeddedTogether = 512;
constexpr auto kTimeBetweenSaves = std::chrono::minutes(1);
// The times of a file system may have steps of two seconds. A file that was changed so shortly before an index was made
// may have been changed once more since, with the same times.
constexpr std::int64_t kTimeStep = 2'000'000'000;
// Marks the number of a passage whose vector is not computed yet.
constexpr std::uint32_t kPending = std::uint32_t{1} << 31;

struct HashOfChecksum {
  std::size_t operator()(const Fingerprint& f) const { return static_cast<std::size_t>(f.low); }
};
using PassagesByText = std::unordered_map<Fingerprint, std::uint32_t, HashOfChecksum>;

std::string absolute_name(const std::string& path) {
  std::string out = std::filesystem::absolute(path).lexically_normal().string();
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class IndexUpdater {
 public:
  IndexUpdater(const std::string& path, std::span<const std::string> paths, SentenceEncoder& encoder,
               const TextIndexOptions& options, const std::function<void(std::size_t, std::size_t)>& progress)
      : path_(path), encoder_(encoder), prompt_(encoder.passage_prompt()), progress_(progress) {
    set_head(paths, options);
    open_old();
  }

  TextIndexUpdate update() {
    const GuardedReads reads;
    read_files();
    if (next_number() == 0) throw_no_text();
    out_.files = files_.size(), out_.passages = next_number(), out_.embedded = pending_.size();
    if (old_) out_.removed = old_->num_files() - known_;
    if (!needs_writing()) return std::move(out_);
    embed_pending();
    save();
    out_.written = true;
    return std::move(out_);
  }

 private:
  // A file of the new index. Its places hold numbers that `resolved` makes final.
  struct NewFile {
    IndexedFile record{};
    std::vector<IndexedPlace> places{};
  };

  void set_head(std::span<const std::string> paths, const TextIndexOptions& options) {
    if (options.vectors != DType::F16 && options.vectors != DType::I8)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("an index cannot have vectors of type ", dtype_name(options.vectors)),
                  "the types are f16 and i8");
    if (path_.empty()) throw Error(ErrorCode::InvalidArgument, "an index needs the name of its file, which is empty");
    if (paths.empty()) throw Error(ErrorCode::InvalidArgument, "an index needs at least one file or folder of texts");
    if (std::find(paths.begin(), paths.end(), "") != paths.end())
      throw Error(ErrorCode::InvalidArgument, "the name of a file or folder of texts is empty");
    (void)split_into_chunks({}, encoder_.tokenizer(), options.chunks);  // refuses sizes out of range
    (void)passage_kind_name(options.passages);
    IndexHead& head = content_.head;
    head.started_ns = nanoseconds_now();
    for (const std::string& p : paths) head.paths.push_back(absolute_name(p));
    head.options = options;
    head.options.check_content = false;
    // What the model reads limits chunks.
    ChunkOptions& chunks = head.options.chunks;
    chunks.max_tokens = std::min(chunks.max_tokens, encoder_.max_text_tokens(prompt_));
    chunks.overlap = std::min(chunks.overlap, chunks.max_tokens / 2);
    head.model = absolute_name(encoder_.folder()), head.model_fingerprint = encoder_.fingerprint();
    head.width = encoder_.hidden_size();
    check_content_ = options.check_content;
    for (const std::string& text : head.paths) check_name(text);
    check_name(head.model);
  }

  static void check_name(const std::string& path) {
    if (find_invalid_utf8(path))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("an index cannot name \"", path, "\": the path is not valid UTF-8"), "rename the folder");
  }

  void open_old() {
    if (!has_file(path_)) return;
    if (!IndexFile::is_index(path_))
      throw Error(ErrorCode::BadFile,
                  concat_text("\"", path_, "\" is not an index of texts, and is not replaced by one"),
                  "give another name, or delete the file");
    try {
      old_.emplace(path_);
      const GuardedReads reads;
      old_->verify_vectors();
      for (std::size_t i = 0; i < old_->num_passages(); ++i) (void)old_->checked_text(i);
      reads.check(old_->mapping().bytes().data());
    } catch (const Error& e) {
      if (e.code() != ErrorCode::BadFile) throw;
      old_.reset();
      out_.rebuilt = e.diagnostic().message;
      return;
    }
    const IndexHead &was = old_->head(), &now = content_.head;
    if (was.model_fingerprint != now.model_fingerprint || was.width != now.width)
      out_.rebuilt = "it was made with another model";
    else if (was.options.vectors != now.options.vectors)
      out_.rebuilt = concat_text("its vectors are of type ", dtype_name(was.options.vectors));
    usable_ = out_.rebuilt.empty();
    same_split_ = was.options.passages == now.options.passages && was.options.chunks == now.options.chunks;
    if (!usable_) return;
    adopted_.assign(old_->num_passages(), kPending);
    for (std::size_t i = 0; i < old_->num_passages(); ++i)
      old_by_text_.emplace(old_->passage(i).checksum, static_cast<std::uint32_t>(i));
  }

  std::size_t next_number() const { return content_.passages.size() + pending_.size(); }

  // The number of a passage of the old index.
  std::uint32_t adopt(std::uint32_t passage) {
    std::uint32_t& number = adopted_[passage];
    if (number != kPending) return number;
    const IndexedPassage p = old_->passage(passage);
    number = static_cast<std::uint32_t>(content_.passages.size());
    content_.passages.push_back(p);
    const char* vector = reinterpret_cast<const char*>(old_->vector(passage));
    content_.vectors.append(vector, IndexFile::vector_bytes(content_.head));
    if (content_.head.options.vectors == DType::I8) {
      const float scale = old_->scale(passage);
      content_.scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
    }
    return number;
  }

  std::uint32_t number_of(std::string text, const std::string& file, std::size_t line) {
    const Fingerprint checksum = text_checksum(text);
    if (const auto old = old_by_text_.find(checksum); old != old_by_text_.end()) return adopt(old->second);
    const auto [entry, added] = pending_by_text_.emplace(checksum, static_cast<std::uint32_t>(pending_.size()));
    if (added) {
      if (pending_.size() >= kPending - 1)
        throw Error(ErrorCode::InvalidArgument, "an index has at most 2^31 passages", "make several indexes");
      texts_.push_back(std::move(text));
      pending_.push_back({texts_.back(), checksum});
      origins_.push_back(concat_text(file, ":", line));
    }
    return entry->second | kPending;
  }

  void read_files() {
    std::unordered_map<std::string, std::size_t> old_files;
    if (old_)
      for (std::size_t i = 0; i < old_->num_files(); ++i) old_files.emplace(old_->file(i).path, i);
    const std::string own = absolute_name(path_);
    for (const TextFile& found : find_text_files(content_.head.paths, content_.head.options.files, &out_.left_out)) {
      StopRequest::check();
      if (found.path == own) continue;
      std::optional<IndexedFile> before;
      if (const auto old = old_files.find(found.path); old != old_files.end()) before = old_->file(old->second);
      NewFile file;
      paths_.push_back(found.path);
      file.record = {.path = paths_.back(),
                     .root = found.root,
                     .size = found.size,
                     .mtime_ns = found.mtime_ns,
                     .ctime_ns = found.ctime_ns};
      if (!read_file_of(found, before, file)) continue;
      known_ += before ? 1 : 0;
      files_.push_back(std::move(file));
    }
  }

  // Sets content and places. False for a file that is left out.
  bool read_file_of(const TextFile& found, const std::optional<IndexedFile>& before, NewFile& file) {
    const bool reusable = before && usable_ && same_split_;
    const auto reuse = [&] {
      file.record.content = before->content;
      for (std::uint32_t i = 0; i < before->num_places; ++i) {
        const IndexedPlace p = old_->place(before->first_place + i);
        file.places.push_back({adopt(p.passage), p.line});
      }
      ++out_.unchanged;
      return true;
    };
    const bool same_times = before && before->size == found.size && before->mtime_ns == found.mtime_ns &&
                            before->ctime_ns == found.ctime_ns;
    const bool certain =
        old_ && std::max(found.mtime_ns, found.ctime_ns) < old_->head().started_ns - kTimeStep && !check_content_;
    if (reusable && same_times && certain) return reuse();
    try {
      if (!found.named && looks_binary(found.path)) {
        out_.left_out.push_back({{ErrorCode::BadFile, concat_text(found.path, ": a binary file"), {}, {}}, true});
        return false;
      }
      const std::string text = read_text_file(found.path);
      file.record.content = text_checksum(text);
      const bool same_content = before && before->content == file.record.content;
      stale_times_ = stale_times_ || (same_content && !same_times);
      if (reusable && same_content) return reuse();
      for (Passage& p :
           split_text(text, content_.head.options.passages, encoder_.tokenizer(), content_.head.options.chunks)) {
        const std::size_t line = std::min<std::size_t>(p.line, ~std::uint32_t{0});
        file.places.push_back({number_of(std::move(p.text), found.path, line), static_cast<std::uint32_t>(line)});
      }
      ++(same_content ? out_.unchanged : before ? out_.changed : out_.added);
      return true;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::BadFile && e.code() != ErrorCode::NotFound && e.code() != ErrorCode::Unsupported)
        throw;
      out_.left_out.push_back({e.diagnostic(), false});
      return false;
    }
  }

  [[noreturn]] void throw_no_text() const {
    for (const LeftOutFile& left : out_.left_out)
      if (!left.binary) throw Error(left.why);
    throw Error(ErrorCode::InvalidArgument, "the files hold no text to search",
                out_.left_out.empty() ? "" : "all of them are binary");
  }

  bool needs_writing() const {
    if (!old_ || !usable_ || !same_split_ || stale_times_) return true;
    if (old_->head().paths != content_.head.paths || !(old_->head().options == content_.head.options) ||
        old_->head().model != content_.head.model)
      return true;
    return out_.added + out_.changed + out_.removed + pending_.size() > 0;
  }

  void embed_pending() {
    auto saved = std::chrono::steady_clock::now();
    const auto width = static_cast<std::size_t>(content_.head.width);
    while (embedded_ < pending_.size()) {
      const std::size_t count = std::min(kEmbeddedTogether, pending_.size() - embedded_);
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < count; ++i) texts.emplace_back(pending_[embedded_ + i].text);
      const Tensor vectors = encoder_.embed(
          texts, nullptr,
          [&](std::size_t done) {
            if (progress_) progress_(embedded_ + done, pending_.size());
          },
          [&](std::size_t i) { return origins_[embedded_ + i]; }, prompt_);
      const std::span<const float> values = vectors.values<float>();
      for (std::size_t i = 0; i < count; ++i)
        append_vector(values.subspan(i * width, width), content_.head.options.vectors, content_.vectors,
                      content_.scales);
      embedded_ += count;
      if (embedded_ < pending_.size() && std::chrono::steady_clock::now() - saved > kTimeBetweenSaves) {
        save();
        saved = std::chrono::steady_clock::now();
      }
    }
  }

  // Writes the files all of whose passages have vectors.
  void save() {
    const std::size_t num_adopted = content_.passages.size();
    IndexContent now;
    now.head = content_.head;
    now.passages = content_.passages;
    now.passages.insert(now.passages.end(), pending_.begin(),
                        pending_.begin() + static_cast<std::ptrdiff_t>(embedded_));
    for (const NewFile& file : files_) {
      const bool whole = std::all_of(file.places.begin(), file.places.end(), [&](const IndexedPlace& p) {
        return (p.passage & kPending) == 0 || (p.passage & ~kPending) < embedded_;
      });
      if (!whole) continue;
      now.files.push_back(file.record);
      now.files.back().first_place = static_cast<std::uint32_t>(now.places.size());
      now.files.back().num_places = static_cast<std::uint32_t>(file.places.size());
      for (const IndexedPlace& p : file.places) {
        const std::uint32_t number =
            (p.passage & kPending) == 0 ? p.passage : static_cast<std::uint32_t>(num_adopted) + (p.passage & ~kPending);
        now.places.push_back({number, p.line});
      }
    }
    if (now.places.size() >= ~std::uint32_t{0})
      throw Error(ErrorCode::InvalidArgument, "an index has at most 2^32 places of passages", "make several indexes");
    now.scales.swap(content_.scales), now.vectors.swap(content_.vectors);
    if (old_) GuardedReads::check(old_->mapping().bytes().data());
    write_index(path_, now);
    now.scales.swap(content_.scales), now.vectors.swap(content_.vectors);
  }

  std::string path_;
  SentenceEncoder& encoder_;
  std::string prompt_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::optional<IndexFile> old_;
  bool usable_ = false, same_split_ = false;  // the old vectors; the way that files are split
  bool check_content_ = false, stale_times_ = false;
  std::vector<std::uint32_t> adopted_;  // numbers of passages of the old index, kPending: none yet
  PassagesByText old_by_text_, pending_by_text_;
  IndexContent content_;  // its passages are those of the old index, its vectors those and the embedded ones
  std::vector<NewFile> files_;
  std::deque<std::string> paths_, texts_;
  std::vector<IndexedPassage> pending_;
  std::vector<std::string> origins_;  // "file:line" of each
  std::size_t embedded_ = 0, known_ = 0;
  TextIndexUpdate out_;
};

}  // namespace

std::string_view passage_kind_name(PassageKind kind) {
  switch (kind) {
    case PassageKind::Lines: return "lines";
    case PassageKind::Paragraphs: return "paragraphs";
    case PassageKind::Chunks: return "chunks";
  }
  detail::throw_no_enumerator("PassageKind", static_cast<std::int64_t>(kind));
}

std::vector<Passage> split_text(std::string_view text, PassageKind kind, const Tokenizer& tokenizer,
                                const ChunkOptions& chunks) {
  switch (kind) {
    case PassageKind::Lines: return split_long_passages(split_into_lines(text), tokenizer, chunks);
    case PassageKind::Paragraphs: return split_long_passages(split_into_paragraphs(text), tokenizer, chunks);
    case PassageKind::Chunks: return split_into_chunks(text, tokenizer, chunks);
  }
  detail::throw_no_enumerator("PassageKind", static_cast<std::int64_t>(kind));
}

struct TextIndex::Impl {
  explicit Impl(const std::string& path) : file(path) {}
  IndexFile file;
  std::atomic<bool> verified{false};  // the vectors
};

TextIndex::TextIndex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextIndex::TextIndex(TextIndex&&) noexcept = default;
TextIndex& TextIndex::operator=(TextIndex&&) noexcept = default;
TextIndex::~TextIndex() = default;

TextIndex TextIndex::open(const std::string& path) try {
  return TextIndex(std::make_unique<Impl>(path));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("TextIndex::open");
}

const TextIndex::Impl& TextIndex::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a TextIndex was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

std::size_t TextIndex::num_files() const { return impl().file.num_files(); }
std::size_t TextIndex::num_passages() const { return impl().file.num_passages(); }
std::size_t TextIndex::size_bytes() const { return impl().file.mapping().size(); }
const std::vector<std::string>& TextIndex::paths() const { return impl().file.head().paths; }
const TextIndexOptions& TextIndex::options() const { return impl().file.head().options; }
const std::string& TextIndex::model() const { return impl().file.head().model; }

std::int64_t TextIndex::dimensions() const { return impl().file.head().width; }

bool TextIndex::is_current(const std::string& path) const try {
  const IndexFile& index = impl().file;
  const GuardedReads reads;
  for (std::size_t i = 0; i < index.num_files(); ++i) {
    const IndexedFile known = index.file(i);
    if (known.path != path) continue;
    std::error_code missing;
    if (!std::filesystem::is_regular_file(path, missing)) return false;
    FileSelection any;
    const std::vector<TextFile> now = find_text_files(std::span(&path, 1), any);
    return now.size() == 1 && now[0].size == known.size && now[0].mtime_ns == known.mtime_ns &&
           now[0].ctime_ns == known.ctime_ns;
  }
  return false;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("TextIndex::is_current");
}

std::vector<IndexMatch> TextIndex::search(SentenceEncoder& encoder, const std::string& query, std::size_t count) const
    try {
  const IndexFile& index = impl().file;
  const std::string& path = index.mapping().path();
  if (encoder.fingerprint() != index.head().model_fingerprint || encoder.hidden_size() != index.head().width)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the vectors of the index \"", path, "\" are those of another model than \"",
                            encoder.folder(), "\""),
                "search with the model of the index, or make the index anew with this one");
  const GuardedReads reads;
  if (!impl().verified.load()) {
    index.verify_vectors();
    impl_->verified.store(true);
  }
  const Tensor embedded = encoder.embed(
      std::span(&query, 1), nullptr, nullptr, [](std::size_t) { return "the query"; }, encoder.query_prompt());
  std::vector<float> direction(embedded.values<float>().begin(), embedded.values<float>().end());
  double squares = 0;
  for (const float v : direction) squares += double{v} * v;
  if (!std::isfinite(squares))  // else the passages would seem to be damaged
    throw Error(ErrorCode::BadFile, "the vector of the query has a NaN or an infinity",
                concat_text("the weights of the model \"", encoder.folder(), "\" may be damaged"));
  if (squares > 0)
    for (float& v : direction) v = static_cast<float>(v / std::sqrt(squares));

  std::vector<Match> best(index.num_passages());
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (i % 4096 == 0) StopRequest::check();
    const float score = dot_row(index.vector(i), index.head().options.vectors, direction) * index.scale(i);
    if (!std::isfinite(score)) index.fail(concat_text("has a damaged vector of passage ", i));
    best[i] = {i, score};
  }
  keep_best(best, count);
  std::vector<IndexMatch> out(best.size());
  std::unordered_map<std::size_t, std::size_t> rank;
  for (std::size_t i = 0; i < best.size(); ++i) {
    out[i].score = best[i].score, out[i].text = index.checked_text(best[i].index);
    rank.emplace(best[i].index, i);
  }
  for (std::size_t i = 0; i < index.num_places() && !rank.empty(); ++i) {
    const IndexedPlace place = index.place(i);
    if (const auto found = rank.find(place.passage); found != rank.end())
      out[found->second].places.push_back({std::string(index.file(index.file_of_place(i)).path), place.line});
  }
  reads.check(index.mapping().bytes().data());
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("TextIndex::search");
}

TextIndexUpdate update_text_index(const std::string& path, std::span<const std::string> paths, SentenceEncoder& encoder,
                                  const TextIndexOptions& options,
                                  const std::function<void(std::size_t, std::size_t)>& progress) try {
  return IndexUpdater(path, paths, encoder, options, progress).update();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("update_text_index");
}

}  // namespace rlx

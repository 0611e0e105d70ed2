// Saved packed layouts: a one-page text header that describes the bytes after it, then the bytes.
#include "rlx/formats/packed_weight_files.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "rlx/base/cache_folder.h"
#include "rlx/base/output_file.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {
namespace {

constexpr std::size_t kHeadBytes = 4096;
constexpr std::string_view kFirstLine = "rlx form 1\n";

std::string hash_of(std::span<const std::byte> bytes) { return fingerprint_bytes(bytes.data(), bytes.size()).text(); }
std::string hash_of(std::string_view text) { return fingerprint_bytes(text.data(), text.size()).text(); }

std::string source_line(const SourceIdentity& s) {
  return concat_text("source ", s.device, " ", s.inode, " ", s.size, " ", s.mtime_ns, " ", s.header, "\n");
}

// The header without its last line, its own checksum.
std::string head_text(std::string_view key, std::size_t bytes, const SourceIdentity& source, std::string_view content,
                      std::string_view checksum) {
  return concat_text(kFirstLine, "key ", key, "\nbytes ", bytes, "\n", source_line(source), "content ", content,
                     "\nchecksum ", checksum, "\n");
}
std::string sealed(std::string head) {
  head += concat_text("head ", hash_of(head), "\n");
  check(head.size() <= kHeadBytes, "the header of a packed weight file fits its page");
  head.resize(kHeadBytes, '\0');
  return head;
}

std::optional<std::string_view> line_of(std::string_view head, std::string_view name) {
  const std::size_t at = head.find(concat_text("\n", name, " "));
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = head.substr(at + name.size() + 2);
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

PackedWeightFiles::PackedWeightFiles(std::string folder, Options options)
    : folder_(std::move(folder)), options_(options) {
  prepare_cache_folder(folder_, "the folder of packed weights");
}

std::string PackedWeightFiles::path_of(std::string_view key) const {
  return join_path(folder_, hash_of(key) + ".form");
}

std::vector<std::string> PackedWeightFiles::problems() const {
  std::lock_guard lock(mutex_);
  return problems_;
}

std::vector<const void*> PackedWeightFiles::mapped() const {
  std::lock_guard lock(mutex_);
  return mapped_;
}

std::size_t PackedWeightFiles::found_bytes() const {
  std::lock_guard lock(mutex_);
  return found_bytes_;
}

std::size_t PackedWeightFiles::saved_bytes() const {
  std::lock_guard lock(mutex_);
  return saved_bytes_;
}

// A full disk, or a folder without write permission, is reported once: later writes would fail the same way.
void PackedWeightFiles::write(const std::string& path, std::span<const std::string_view> parts) {
  {
    std::lock_guard lock(mutex_);
    if (!writable_) return;
  }
  try {
    replace_file(path, parts, OutputLinks::Replace);
    std::lock_guard lock(mutex_);
    saved_bytes_ += parts.back().size();
  } catch (const Error& e) {
    if (options_.strict) throw;
    {
      std::lock_guard lock(mutex_);
      if (!std::exchange(writable_, false)) return;
    }
    note(concat_text("packed weights are no longer saved: ", e.diagnostic().message));
  }
}

void PackedWeightFiles::note(std::string problem) {
  if (options_.strict) throw Error(ErrorCode::BadFile, std::move(problem), "delete the file; it will be written again");
  std::lock_guard lock(mutex_);
  problems_.push_back(std::move(problem));
}

Tensor PackedWeightFiles::find(std::string_view key, std::size_t bytes, const SourceIdentity& source,
                               const std::function<std::string()>& content) {
  const std::string path = path_of(key);
  if (!is_file(path)) return {};
  std::shared_ptr<const MappedFile> file;
  try {
    file = std::make_shared<const MappedFile>(MappedFile::open(path, MapAdvice::Normal));
  } catch (const Error& e) {
    note(e.diagnostic().message);
    return {};
  }
  if (options_.guard_mapping) guard_mapping(file->bytes().data());
  const GuardedReads reads;
  const auto damaged = [&](std::string_view why) -> Tensor {
    note(concat_text("packed weight file \"", path, "\" ", why));
    return {};
  };
  const std::string_view page = file->text().substr(0, kHeadBytes);
  if (page.substr(0, 9) != kFirstLine.substr(0, 9)) return damaged("is not a packed weight file");
  const std::size_t first_line = page.find('\n');
  if (first_line == std::string_view::npos) return damaged("has a damaged header");
  if (page.substr(0, kFirstLine.size()) != kFirstLine)
    return damaged(concat_text("has version ", page.substr(9, first_line - 9), "; this program reads version 1"));
  const std::size_t seal = page.find("\nhead ");
  if (page.size() < kHeadBytes || seal == std::string_view::npos ||
      line_of(page, "head") != hash_of(page.substr(0, seal + 1)))
    return damaged("has a damaged header");
  if (line_of(page, "key") != key) return {};  // a hash collision of another packed layout
  if (line_of(page, "bytes") != std::to_string(bytes)) return damaged("has another size than the packed weight");
  if (file->size() != kHeadBytes + bytes)
    return damaged(concat_text(file->size() < kHeadBytes + bytes ? "is cut short: " : "is too long: ", file->size(),
                               " bytes instead of ", kHeadBytes + bytes));
  const std::span<const std::byte> payload = file->bytes().subspan(kHeadBytes);
  const std::string checksum(line_of(page, "checksum").value_or(""));
  if (options_.verify && checksum != hash_of(payload)) return damaged("has a wrong checksum");
  if (concat_text("source ", *line_of(page, "source"), "\n") != source_line(source)) {
    const std::string now = content();
    if (line_of(page, "content") != now) return {};  // other weights
    // The same weights in another or touched file: record that file as the new source.
    const std::string head = sealed(head_text(key, bytes, source, now, checksum));
    const std::string_view parts[] = {head, {reinterpret_cast<const char*>(payload.data()), payload.size()}};
    write(path, parts);
  }
  if (damaged_file_at(file->bytes().data())) return damaged("was made shorter while it was read");
  Tensor found = Tensor::borrowed(payload.data(), Shape({Dim(bytes)}, DType::U8), file);
  std::lock_guard lock(mutex_);
  mapped_.push_back(file->bytes().data());
  found_bytes_ += bytes;
  return found;
}

void PackedWeightFiles::save(std::string_view key, std::span<const std::byte> bytes, const SourceIdentity& source,
                             const std::string& content) {
  const std::string head = sealed(head_text(key, bytes.size(), source, content, hash_of(bytes)));
  const std::string_view parts[] = {head, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  const std::string path = path_of(key);
  std::error_code ignored;
  // Opening a pipe for writing would block.
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored)) && !is_file(path) &&
      !std::filesystem::is_symlink(path, ignored))
    return note(concat_text("packed weight file \"", path, "\" is not a regular file, so it cannot be written"));
  write(path, parts);
}

}  // namespace rlx

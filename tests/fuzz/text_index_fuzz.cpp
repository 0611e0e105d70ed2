// Fuzz target: an index of texts, damaged. Opening and reading all of it ends well or in an rlx::Error that is no
// internal one. With an odd first byte the checksums are made right again.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "rlx/models/search/index_file.h"
#include "rlx/models/search/vector_rows.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/support/index_bytes.h"

namespace {

using namespace rlx;

// A sound index of two files and three passages.
std::string sound_index(DType type) {
  IndexContent c;
  c.head.paths = {"/texts"}, c.head.model = "/model", c.head.model_fingerprint = "m", c.head.width = 4;
  c.head.options.vectors = type;
  const std::vector<float> vector = {1, 2, 3, 4};
  for (const char* text : {"one", "two", "three"}) {
    c.passages.push_back({text, text_checksum(text)});
    append_vector(vector, type, c.vectors, c.scales);
  }
  c.places = {{0, 1}, {1, 2}, {2, 1}};
  c.files.push_back({.path = "/texts/a", .size = 7, .first_place = 0, .num_places = 2});
  c.files.push_back({.path = "/texts/b", .size = 5, .first_place = 2, .num_places = 1});
  const std::string path = (fuzz_folder() / "sound.rlxi").string();
  write_index(path, c);
  return read_file(path);
}

void read_all(const std::string& path) {
  const IndexFile index(path);
  const GuardedReads reads;
  const std::vector<float> query(static_cast<std::size_t>(index.head().width), 1.0f);
  index.verify_vectors();
  for (std::size_t i = 0; i < index.num_files(); ++i) (void)std::string(index.file(i).path);
  for (std::size_t i = 0; i < index.num_places(); ++i)
    check(index.place(i).passage < index.num_passages() && index.file_of_place(i) < index.num_files(),
          "places of the file");
  for (std::size_t i = 0; i < index.num_passages(); ++i) {
    (void)(dot_row(index.vector(i), index.head().options.vectors, query) * index.scale(i));
    (void)index.checked_text(i);
  }
}

}  // namespace

// The first byte: whether checksums are repaired, and whether the rest edits a sound index (pairs of a place and a
// value) or is the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const std::string sound[] = {sound_index(DType::F16), sound_index(DType::I8)};
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 2) != 0) {
    std::string edited = sound[data[0] >> 2 & 1];
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3)
      edited[(static_cast<unsigned char>(bytes[i]) * 256U + static_cast<unsigned char>(bytes[i + 1])) % edited.size()] =
          bytes[i + 2];
    bytes = edited;
  }
  const std::string path = (fuzz_folder() / "index.rlxi").string();
  std::ofstream(path, std::ios::binary) << ((data[0] & 1) != 0 ? test::resealed_index(bytes) : bytes);
  try {
    read_all(path);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Internal) throw;
  }
  return 0;
}

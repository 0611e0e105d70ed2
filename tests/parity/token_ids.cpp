// Token ids and texts of a tokeniser, for the comparisons with other implementations:
// `token_ids encode|plain|decode|stream|time TOKENIZER`, a model folder, a tokenizer.json or a GGUF file, texts on
// standard input, each a little-endian u32 byte count and its bytes. One line of output per text; plain: without the
// model's special tokens.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>

#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/json.h"
#include "rlx/text/stream_decoder.h"
#include "rlx/text/tokenizer.h"

namespace {

std::string ids_line(const std::vector<rlx::TokenId>& ids) {
  std::string line;
  for (const rlx::TokenId id : ids) {
    if (!line.empty()) line += ' ';
    line += std::to_string(id);
  }
  return line;
}

std::string hexadecimal(const std::string& text) {  // JSON would need escapes
  constexpr char kHex[] = "0123456789abcdef";
  std::string line;
  for (const unsigned char byte : text) {
    line += kHex[byte >> 4];
    line += kHex[byte & 15];
  }
  return line;
}

// The pieces of a streaming decode, joined; each is checked to be whole characters.
std::string streamed(const rlx::Tokenizer& tokenizer, const std::vector<rlx::TokenId>& ids) {
  rlx::StreamDecoder stream(tokenizer);
  std::string text;
  const auto add = [&](const std::string& piece) {
    if (!piece.empty() && (static_cast<unsigned char>(piece[0]) & 0xC0) == 0x80) text += "<split character>";
    text += piece;
  };
  for (const rlx::TokenId id : ids) add(stream.push(id));
  add(stream.flush());
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::unique_ptr<rlx::Tokenizer> load(const std::string& path) {
  if (ends_with(path, ".json")) return rlx::tokenizer_from_json(rlx::JsonDocument::read(path));
  if (ends_with(path, ".gguf")) return rlx::tokenizer_from_gguf(*rlx::GgufFile::open(path));
  return rlx::load_tokenizer(path);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: token_ids encode|plain|decode|stream|time TOKENIZER < texts\n");
    return 2;
  }
  const std::string mode = argv[1], path = argv[2];
  const auto load_start = std::chrono::steady_clock::now();
  const std::unique_ptr<rlx::Tokenizer> tokenizer = load(path);
  const double load_seconds = seconds_since(load_start);
  const std::string input{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::string out;
  std::size_t num_bytes = 0, num_tokens = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at + 4 <= input.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, input.data() + at, 4);
    const std::string_view text = std::string_view(input).substr(at + 4, size);
    at += 4 + size;
    const std::vector<rlx::TokenId> ids = tokenizer->encode(text, mode != "plain");
    num_bytes += size;
    num_tokens += ids.size();
    if (mode == "encode" || mode == "plain") out += ids_line(ids) + "\n";
    if (mode == "decode") out += hexadecimal(tokenizer->decode(ids)) + "\n";
    if (mode == "stream") out += hexadecimal(streamed(*tokenizer, ids)) + "\n";
  }
  const double seconds = seconds_since(start);
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (mode == "time") {
    std::printf("load %.2f ms, %zu bytes, %zu tokens, %.1f MB/s\n", load_seconds * 1e3, num_bytes, num_tokens,
                static_cast<double>(num_bytes) / seconds / 1e6);
  }
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

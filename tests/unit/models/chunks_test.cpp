// Texts in chunks of tokens: every token is in a chunk, none has too many, and they overlap.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "rlx/models/passages.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/tiny_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

std::int64_t tokens_in(const Tokenizer& tokenizer, std::string_view text) {
  return static_cast<std::int64_t>(tokenizer.encode(text, false).size());
}

std::string words(std::size_t first, std::size_t last, char between = ' ') {
  std::string out;
  for (std::size_t i = first; i < last; ++i) out += std::string(1, static_cast<char>('a' + i % 3)) + between;
  if (!out.empty()) out.pop_back();
  return out;
}

// A text of words, punctuation, long lines, long words and blank lines.
std::string random_text(std::mt19937& random) {
  const std::vector<std::string> pieces = {"a", "bb", "the cat", "word.", "naïve", "日本語", "x-y", "12,5", "🙂", "—"};
  std::string out;
  for (std::size_t n = random() % 120; n > 0; --n) {
    out += pieces[random() % pieces.size()];
    if (random() % 40 == 0)
      for (std::size_t i = random() % 90; i > 0; --i) out += pieces[random() % pieces.size()];
    const unsigned separator = random() % 12;
    out += separator == 0 ? "\n" : separator == 1 ? "\n\n" : separator == 2 ? " \r\n \t\n" : separator == 3 ? "" : " ";
  }
  return out;
}

}  // namespace

TEST_CASE("chunks: lines together, overlapping, with the line that each begins in") {
  const TinyModel model;
  const auto tokenizer = load_tokenizer(model.path());
  const auto chunks = split_into_chunks("a\nb\n\nc\na b\n", *tokenizer, {.max_tokens = 4, .overlap = 2});
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0].text == "a\nb\n\nc");
  CHECK(chunks[0].line == 1);
  CHECK(chunks[1].text == "b\n\nc\na b");
  CHECK(chunks[1].line == 2);
  CHECK(split_into_chunks("", *tokenizer).empty());
  CHECK(split_into_chunks(" \n\t\n\xe2\x80\x8b\n", *tokenizer).empty());
  // The end of a paragraph in the last quarter ends a chunk.
  const auto ends =
      split_into_chunks(words(0, 7, '\n') + "\n\n" + words(7, 20, '\n'), *tokenizer, {.max_tokens = 8, .overlap = 0});
  REQUIRE(!ends.empty());
  CHECK(ends[0].text == words(0, 7, '\n'));
  CHECK(ends[1].line == 9);
}

TEST_CASE("chunks: a long line is divided between sentences and words") {
  const TinyModel model;
  const auto tokenizer = load_tokenizer(model.path());
  const auto chunks = split_into_chunks(words(0, 100), *tokenizer, {.max_tokens = 10, .overlap = 3});
  REQUIRE(chunks.size() > 10);
  for (const Passage& chunk : chunks) {
    CHECK(chunk.line == 1);
    CHECK(tokens_in(*tokenizer, chunk.text) <= 10);
    CHECK(chunk.text.front() != ' ');
  }
  const auto lines = split_long_passages(split_into_lines("a\n" + words(0, 50) + "\nb\n\xe2\x80\x8b\n"), *tokenizer,
                                         {.max_tokens = 10, .overlap = 2});
  CHECK(lines.front().text == "a");
  CHECK(lines.back().text == "b");
  CHECK(lines.size() > 5);
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) CHECK(lines[i].line == 2);
}

TEST_CASE("chunks: random texts with several tokenisers, every character in a chunk of the right size") {
  const TinyModel tiny;
  std::vector<std::unique_ptr<TempDir>> folders;
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(load_tokenizer(tiny.path()));
  for (const char* name : {"mean", "max", "last", "rerank_roberta"}) {
    folders.push_back(std::make_unique<TempDir>());
    write_folder(*folders.back(), folder_reference(name));
    tokenizers.push_back(load_tokenizer(folders.back()->path()));
  }
  for (const auto& tokenizer : tokenizers)
    for (const char* character : {"a", ".", ",", "-", "1", "ï", "日", "🙂", "—"})
      REQUIRE(tokens_in(*tokenizer, character) > 0);
  std::mt19937 random(3);
  std::size_t chunks_seen = 0, repeated = 0;
  for (int round = 0; round < repetitions(150); ++round) {
    const Tokenizer& tokenizer = *tokenizers[random() % tokenizers.size()];
    const std::string text = random_text(random);
    ChunkOptions options;
    options.max_tokens = 1 + random() % 40, options.overlap = random() % (options.max_tokens / 2 + 1);
    CAPTURE(text);
    CAPTURE(options.max_tokens);
    CAPTURE(options.overlap);
    // The characters besides blanks, and their lines.
    std::string dense;
    std::vector<std::size_t> lines;
    std::size_t line = 1;
    for (const char c : text) {
      if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) dense += c, lines.push_back(line);
      line += c == '\n' ? 1 : 0;
    }
    // Where the chunks so far may end, for each chunk begins within or right after what came before.
    std::vector<char> ends(dense.size() + 1, 0);
    ends[0] = 1;
    for (const Passage& chunk : split_into_chunks(text, tokenizer, options)) {
      const std::int64_t tokens = tokens_in(tokenizer, chunk.text);
      // A single character may have more tokens than the chunk.
      CHECK((tokens <= options.max_tokens || chunk.text.size() <= 4));
      CHECK(tokens > 0);
      std::string part;
      for (const char c : chunk.text)
        if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) part += c;
      std::vector<char> next(ends.size(), 0);
      bool later = false;  // it may begin right after what came before
      for (std::size_t at = 0; at + part.size() <= dense.size(); ++at) {
        if (dense.compare(at, part.size(), part) != 0 || lines[at] != chunk.line) continue;
        const auto first = ends.begin() + static_cast<std::ptrdiff_t>(at);
        if (std::find(first, first + static_cast<std::ptrdiff_t>(part.size()), 1) ==
            first + static_cast<std::ptrdiff_t>(part.size()))
          continue;
        if (options.overlap == 0 && *first == 0) continue;
        next[at + part.size()] = 1;
        later = later || *first != 0;
      }
      CAPTURE(chunk.text);
      REQUIRE(std::find(next.begin(), next.end(), 1) != next.end());
      repeated += later ? 0 : 1;
      ends = std::move(next);
      ++chunks_seen;
    }
    REQUIRE(ends.back() == 1);
  }
  CHECK(chunks_seen > 500);
  CHECK(repeated > 50);
}

TEST_CASE("chunks: a line of a megabyte takes no more than a few readings of it") {
  const TinyModel model;
  const auto tokenizer = load_tokenizer(model.path());
  const std::string text = words(0, repetitions(500000));
  const auto chunks = split_into_chunks(text, *tokenizer, {.max_tokens = 256, .overlap = 32});
  CHECK(chunks.size() > text.size() / 2 / 256);
  CHECK(chunks.size() < text.size() / 2 / 150);
  const std::string one_word(repetitions(1 << 18), 'a');
  CHECK(split_into_chunks(one_word, *tokenizer).size() > 0);
}

// Saved conversations: the tokens of a text with their KV cache, so that a conversation continues without
// recomputation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/models/decoder_model.h"
#include "rlx/text/chat_template.h"

namespace rlx {

/// The state of an unfinished answer at the end of a text that its tokens do not determine.
struct BegunAnswer {
  std::int64_t tokens = 0;                 // tokens of the answer, the last of the text; 0: no answer
  std::optional<double> surprise_limit{};  // Mirostat's state (Sampler::Mark), in bits; none without Mirostat
};

/// The content of a conversation.
struct Conversation {
  std::vector<TokenId> tokens{};        // the whole text
  std::vector<ChatMessage> messages{};  // the messages, where a chat template rendered the text
  BegunAnswer answer{};                 // the answer at the end
};

/// Writes a conversation with the keys and values of its first `cached` tokens, which lie in `pages` of the model's
/// cache. The file appears whole or not at all. Errors: InvalidArgument where `cached` or `answer` exceeds the tokens
/// or the pages, for tokens outside the vocabulary, for messages that are not valid UTF-8, and where the pages of
/// sliding-window layers lack keys that the next token needs; those of OutputFile and of CompiledGraph::read_state.
///
/// File version 1, numbers little-endian: "RLXCHAT\n", u32 version, u32 bytes of the header, the header, its checksum.
/// The header is JSON: sizes, messages, the unfinished answer (optional), and the identity of the keys and values:
/// configuration, weights, allowed precision loss, cache type. Then follow, each with its checksum after it: the
/// tokens, I32, and the rows of each cache state, in token order. Version 2 adds: the header may say of a state that
/// its rows begin with those of token `first`. Such a layer has a sliding window, and the earlier rows were freed. A
/// checksum is xxh3-128, low half first. Page sizes and contexts may differ from those of a reader.
void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       const KvPages& pages, std::int64_t cached);
/// The same with a sequence of the model that holds these tokens. InvalidArgument for fewer tokens than the sequence
/// has.
void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       std::int64_t sequence);

/// A conversation file that fits a model. `open` checks all of it.
class ConversationFile {
 public:
  /// Errors: NotFound; BadFile for a file of another kind or version, truncated, too long, or altered; InvalidArgument
  /// for another model, configuration, allowed precision loss or cache type, naming both, and for more tokens than the
  /// model's context.
  static ConversationFile open(const std::string& path, const DecoderModel& model);
  ConversationFile(ConversationFile&&) noexcept;
  ConversationFile& operator=(ConversationFile&&) noexcept;
  ~ConversationFile();

  const Conversation& conversation() const;
  /// Number of tokens whose keys and values are in the file; 0 where the file has only windows and the model keeps
  /// whole contexts.
  std::int64_t cached() const;
  /// Whether the keys and values of the first `count` tokens can be restored. False when the file lacks keys of
  /// sliding-window layers that token `count` attends to.
  bool restores(std::int64_t count) const;
  /// The first token whose keys and values are in the file for sliding-window layers.
  std::int64_t first() const;
  /// Writes the keys and values of the first `count` tokens into `pages` of the model's cache. InvalidArgument for more
  /// tokens than the file or the pages hold, and when `restores(count)` is false.
  void restore(DecoderModel& model, const KvPages& pages, std::int64_t count) const;

 private:
  struct Impl;
  explicit ConversationFile(std::unique_ptr<Impl> impl);
  const Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

/// Reads a conversation into an empty sequence of the model. The sequence then has the tokens whose keys and values are
/// in the file. Errors leave the sequence empty: those of ConversationFile::open, InvalidArgument for a sequence with
/// tokens, OutOfMemory when pages are missing.
Conversation load_conversation(const std::string& path, DecoderModel& model, std::int64_t sequence);

}  // namespace rlx

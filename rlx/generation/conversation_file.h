// Conversations in files: the tokens of a text with their keys and values, so that it goes on without being computed
// again.
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

/// The answer that a text ends with, as far as its tokens do not say how it goes on.
struct BegunAnswer {
  std::int64_t tokens = 0;                 // of it, the last of the text; 0: there is none
  std::optional<double> surprise_limit{};  // what Mirostat has learnt (Sampler::Mark), in bits; none without Mirostat
};

/// What was said.
struct Conversation {
  std::vector<TokenId> tokens{};        // the whole text
  std::vector<ChatMessage> messages{};  // the turns, where a chat template made the text of them
  BegunAnswer answer{};                 // what it ends with
};

/// Writes a conversation with the keys and values of its first `cached` tokens, which lie in `pages` of the model's
/// cache. The file appears whole or not at all. Errors: InvalidArgument where `cached` or `answer` is more than tokens
/// or pages hold, and where the pages of layers with a window lack what the next token needs; those of OutputFile and
/// of CompiledGraph::read_state.
///
/// A file of version 1, numbers little-endian: "RLXCHAT\n", u32 version, u32 bytes of the head, the head, its checksum.
/// The head is JSON: sizes, messages and the answer that it ends with (which files may lack), and what the keys and
/// values belong to: configuration, weights, products, type of the cache. Then, each with its checksum behind it: the
/// tokens, I32, and the rows of each state of the cache, in the order of the tokens. Version 2 differs in that the head
/// may say of a state that its rows begin with those of token `first`: the layer has a window, and what lies before it
/// was given back. A checksum is xxh3-128, low half
/// first. Pages and contexts may differ from those of a reader.
void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       const KvPages& pages, std::int64_t cached);
/// The same with a sequence of the model, whose tokens these are. InvalidArgument for fewer tokens than it has.
void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       std::int64_t sequence);

/// A file of a conversation that fits a model, checked to its end.
class ConversationFile {
 public:
  /// Errors: NotFound; BadFile for what is no such file, of another version, cut short, longer than it says, or
  /// altered; InvalidArgument for one of another model, configuration, products or type of the cache, naming both, or
  /// of more tokens than the model's context.
  static ConversationFile open(const std::string& path, const DecoderModel& model);
  ConversationFile(ConversationFile&&) noexcept;
  ConversationFile& operator=(ConversationFile&&) noexcept;
  ~ConversationFile();

  const Conversation& conversation() const;
  /// Tokens whose keys and values are there; 0 where those of windows alone are and the model keeps the whole ones.
  std::int64_t cached() const;
  /// Whether those of the first `count` tokens can be restored: what follows needs the windows before it.
  bool restores(std::int64_t count) const;
  /// The first token whose keys and values are there in layers with a window.
  std::int64_t first() const;
  /// Writes those of the first `count` tokens into `pages` of the model's cache. InvalidArgument for more than there
  /// are or than the pages hold, and unless it `restores` as many.
  void restore(DecoderModel& model, const KvPages& pages, std::int64_t count) const;

 private:
  struct Impl;
  explicit ConversationFile(std::unique_ptr<Impl> impl);
  const Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

/// Reads a conversation into a sequence of the model that is empty: it has the tokens whose keys and values are in the
/// file. Errors, which leave the sequence empty: those of ConversationFile::open, InvalidArgument for a sequence with
/// tokens, OutOfMemory when pages are missing.
Conversation load_conversation(const std::string& path, DecoderModel& model, std::int64_t sequence);

}  // namespace rlx

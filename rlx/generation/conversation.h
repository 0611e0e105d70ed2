// Truncation of conversations that exceed the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rlx/text/chat_template.h"

namespace rlx {

/// Tokens of a context to reserve for an answer: `max_new_tokens`, at most half of the context. Without a limit (0): a
/// quarter of the context, at most 512.
std::int64_t answer_room(std::int64_t context, std::int64_t max_new_tokens);

/// Removes the oldest turns of a conversation until it has at most `limit` tokens, and returns how many messages were
/// removed. A turn is a user message and everything up to the next user message. Leading system messages stay, and so
/// does the last user message with the messages after it. When that is not enough, every removable turn has been
/// removed. `tokens` counts the tokens of messages. InvalidArgument when it is empty.
std::size_t drop_oldest_turns(std::vector<ChatMessage>& messages, std::int64_t limit,
                              const std::function<std::int64_t(std::span<const ChatMessage>)>& tokens);

}  // namespace rlx

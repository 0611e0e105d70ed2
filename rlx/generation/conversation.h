// Conversations that outgrow the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rlx/text/chat_template.h"

namespace rlx {

/// Tokens of a context that an answer should have: as many as it may have, at most half of the context; a quarter,
/// at most 512, where it has no limit (0).
std::int64_t answer_room(std::int64_t context, std::int64_t max_new_tokens);

/// Removes the oldest turns of a conversation until it has at most `limit` tokens, and returns how many messages went.
/// System messages at the beginning stay, and so does the last user message with what follows it; a turn goes from a
/// user message up to the next. When that is not enough, as many as could go have gone. `tokens` counts those of
/// messages. InvalidArgument when it is empty.
std::size_t drop_oldest_turns(std::vector<ChatMessage>& messages, std::int64_t limit,
                              const std::function<std::int64_t(std::span<const ChatMessage>)>& tokens);

}  // namespace rlx

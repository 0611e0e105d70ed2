// Truncation of conversations: the choice of turns to remove.
#include "rlx/generation/conversation.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {

std::int64_t answer_room(std::int64_t context, std::int64_t max_new_tokens) {
  return max_new_tokens > 0 ? std::min(max_new_tokens, context / 2) : std::min<std::int64_t>(context / 4, 512);
}

std::size_t drop_oldest_turns(std::vector<ChatMessage>& messages, std::int64_t limit,
                              const std::function<std::int64_t(std::span<const ChatMessage>)>& tokens) {
  if (!tokens) throw Error(ErrorCode::InvalidArgument, "drop_oldest_turns: the function that counts tokens is empty");
  const auto first = std::find_if(messages.begin(), messages.end(),
                                  [](const ChatMessage& m) { return m.role != "system" && m.role != "developer"; });
  const auto begin = first - messages.begin();
  std::size_t dropped = 0;
  while (tokens(messages) > limit) {
    const auto oldest = messages.begin() + begin;
    if (oldest == messages.end()) break;
    const auto next = std::find_if(oldest + 1, messages.end(), [](const ChatMessage& m) { return m.role == "user"; });
    if (next == messages.end()) break;
    dropped += static_cast<std::size_t>(next - oldest);
    messages.erase(oldest, next);
  }
  return dropped;
}

}  // namespace rlx

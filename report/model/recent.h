// Look-ups in a map that mostly ask for the key that was asked for before: events of one process
// come one behind the other.
#pragma once

namespace xpu {

// `Map`: a std::map or std::unordered_map, whose values stay where they are. Nothing may be taken
// out of it meanwhile.
template <typename Map>
class Recent {
 public:
  explicit Recent(Map& map) : map_(map) {}

  // As map[key].
  typename Map::mapped_type& operator[](const typename Map::key_type& key) {
    if (last_ == nullptr || last_->first != key) last_ = &*map_.try_emplace(key).first;
    return last_->second;
  }

 private:
  Map& map_;
  typename Map::value_type* last_ = nullptr;
};

}  // namespace xpu

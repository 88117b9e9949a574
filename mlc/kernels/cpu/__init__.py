"""CPU kernel templates. A template obeys the `mlc.schedule` attribute of its kernel and decides nothing itself."""

"""Published weights in GGUF files. `header` and `llama` read what a file holds, without torch; `load` reads weights."""

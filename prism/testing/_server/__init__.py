"""A fake Ollama server on loopback, with faults on demand."""

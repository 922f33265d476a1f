"""One run as one Report, and its forms: terminal, Markdown, CSV, JSON and a page of its own."""

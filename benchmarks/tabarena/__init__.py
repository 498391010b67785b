"""slimsvm as a model of TabArena: files for its repository; README.md says where they go."""

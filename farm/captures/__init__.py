"""What a captured pipeline runs on: images of a person, data sets, and scenes made for it.

Files are read with numpy alone; nothing here knows a framework, so that the command line refuses
what makes no sense before anything starts.
"""

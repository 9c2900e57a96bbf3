"""The plan, the manifest, the proof, the progress: an archive's documents as values, and what follows from them.
Pure.
"""

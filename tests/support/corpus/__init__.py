"""Files nobody should have to send, made by code from real photos: the same ones every time.

``seeds`` are small valid files of every kind that is taken; ``mutation`` breaks them at random; ``hostile`` and
``formats`` make files for a reason each; ``table`` puts all of them together with the answer each must get.
"""
